// What the jobs of this room answer: workbench/wire/touch.py, name for name.

import type { Schemas } from '../../schemas';

export type SiteFacts = Schemas['SiteFacts'];
export type CellShift = Schemas['CellShift'];
export type HeadShift = Schemas['HeadShift'];
export type TokenShift = Schemas['TokenShift'];
export type HeadDistance = Schemas['HeadDistance'];
export type ChangeAnswer = Schemas['ChangeAnswer'];
export type RewriteAnswer = Schemas['RewriteAnswer'];
