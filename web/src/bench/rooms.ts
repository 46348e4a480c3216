// The rooms, in the order of their tabs; each is loaded when it is first entered.

import type { Component } from 'svelte';
import type { Bench } from './bench.svelte';

export type RoomComponent = Component<{ bench: Bench }>;
type Room = {
  name: string;
  title: string;
  load: () => Promise<{ default: RoomComponent }>;
  needsRun?: false; // a room that shows no run: it is open before there is one
};

export const ROOMS: Room[] = [
  { name: 'look', title: 'bench.room.look', load: () => import('./rooms/look/Look.svelte') },
  { name: 'steps', title: 'bench.room.steps', load: () => import('./rooms/steps/Steps.svelte') },
  { name: 'shapes', title: 'bench.room.shapes', load: () => import('./rooms/shapes/Shapes.svelte') },
  { name: 'touch', title: 'bench.room.touch', load: () => import('./rooms/touch/Touch.svelte') },
  { name: 'flow', title: 'bench.room.flow', load: () => import('./rooms/flow/Flow.svelte') },
  { name: 'atlas', title: 'bench.room.atlas', load: () => import('./rooms/atlas/Atlas.svelte') },
  {
    name: 'writing',
    title: 'bench.room.writing',
    load: () => import('./rooms/writing/Writing.svelte'),
  },
  {
    name: 'training',
    title: 'bench.room.training',
    needsRun: false,
    load: () => import('./rooms/training/Training.svelte'),
  },
  {
    name: 'learn',
    title: 'bench.room.learn',
    load: () => import('./rooms/learn/Learn.svelte'),
    needsRun: false,
  },
];

export const roomOf = (name: string): Room => ROOMS.find((each) => each.name === name) ?? ROOMS[0];
