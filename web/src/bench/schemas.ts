// What the server asks for and answers, by name, as its schema says it.

import type { components } from './wire';

export type Schemas = components['schemas'];
