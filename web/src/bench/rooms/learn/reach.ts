// What scrolls must be within reach of the keyboard, and only while it scrolls.

export function reach(node: HTMLElement): () => void {
  const look = () => {
    const scrolls =
      node.scrollWidth > node.clientWidth + 1 || node.scrollHeight > node.clientHeight + 1;
    if (scrolls) node.setAttribute('tabindex', '0');
    else node.removeAttribute('tabindex');
  };
  const watcher = new ResizeObserver(look);
  watcher.observe(node);
  for (const child of node.children) watcher.observe(child);
  return () => watcher.disconnect();
}
