// Files that the browser makes by itself: a table as CSV, a drawing as PNG or on paper.

export type Table = (string | number | null)[][];

const SHARPNESS = 2; // pixels of a PNG for each of the drawing
const MOST_PIXELS = 2 ** 26; // of a PNG: browsers refuse much larger canvases

/** A table as spreadsheets read it: a mark says that it is UTF-8, and no text is a formula. */
export function writeCsv(table: Table): string {
  return `\uFEFF${table.map((row) => row.map(asCell).join(',')).join('\r\n')}\r\n`;
}

function asCell(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The pixels of a drawing. */
export async function rasterise(svg: string): Promise<Blob> {
  const address = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const { naturalWidth: width, naturalHeight: height } = image;
    const sharpness = Math.min(SHARPNESS, Math.sqrt(MOST_PIXELS / (width * height)));
    const canvas = document.createElement('canvas');
    canvas.width = Math.round(width * sharpness);
    canvas.height = Math.round(height * sharpness);
    canvas.getContext('2d')!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done, fail) =>
      canvas.toBlob((blob) => (blob === null ? fail(new Error('PNG')) : done(blob)), 'image/png'),
    );
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** Print a drawing and nothing else, on a page of its own size: a PDF with real text. */
export function print(svg: string): void {
  const drawing = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
  const size = `${drawing.getAttribute('width')}px ${drawing.getAttribute('height')}px`;
  const sheet = document.createElement('div');
  sheet.className = 'printed';
  const style = document.createElement('style');
  style.textContent = `@page { size: ${size}; margin: 0 }`;
  sheet.append(style, document.importNode(drawing, true));
  for (const left of document.querySelectorAll('.printed')) left.remove();
  document.body.append(sheet);
  window.addEventListener('afterprint', () => sheet.remove(), { once: true });
  window.print();
}
