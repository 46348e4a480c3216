// What a learner has typed and the server has not confirmed: it outlives a reload.

const key = (name: string) => `glassformer-draft-${name}`;

export function keepDraft(name: string, text: string): void {
  try {
    localStorage.setItem(key(name), text);
  } catch {
    // No room: the server has what was saved last.
  }
}

export const readDraft = (name: string): string | null => localStorage.getItem(key(name));

/** Forget a draft, unless more was typed in the meantime. */
export function dropDraft(name: string, saved: string): void {
  if (readDraft(name) === saved) localStorage.removeItem(key(name));
}
