// What a room shows, as the Export dialog needs it: each room offers its own, and nothing that it
// could not make.

import type { Bench } from '../bench.svelte';
import type { Table } from './files';

export type RoomView = {
  name: string; // of its files, without the ending
  title: string; // in words
  drawing?: () => string | Promise<string>; // an SVG document, in the light scheme
  tables?: { name: string; title: string; rows: () => Table }[]; // each is a file of its own
  lines?: { job: string; asked: object }; // the job that writes its Python lines
  command?: string; // or the lines themselves
  ofRun?: ('html' | 'trace')[]; // files of the run that it shows, which the server writes
};

/** While a room is open, what `make` returns is what the dialog exports; null: nothing yet. */
export function offerView(bench: Bench, make: () => RoomView | null): void {
  $effect(() => {
    bench.view = make();
  });
  $effect(() => () => {
    bench.view = null;
  });
}

/** What a view shows, and of which text. */
export const titleOf = (bench: Bench, ...parts: (string | null)[]): string => {
  const { model, text } = bench.run!.reading;
  return [...parts, model, text].filter(Boolean).join(' · ');
};
