// The engine's thread. What it answers is copied: operands and tensors stay here for the next look.

import { Desk } from './desk';
import type { Message } from './messages';
import type { Runs } from './store';

const SLICE = 30; // milliseconds until a newer question may take over
let desk: Desk | null = null;

self.onmessage = ({ data }: MessageEvent<Message | { kind: 'page'; page: Runs }>) => {
  if (data.kind === 'page') {
    desk = new Desk(data.page, SLICE, (look) => self.postMessage(look, { transfer: [look.image] }));
    self.postMessage('ready');
  } else desk!.take(data);
};
