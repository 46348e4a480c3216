import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

/** Everything in one file: script and style inside page.html, allowed by their hashes alone. */
function onePage(): Plugin {
  const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  return {
    name: 'one-page',
    enforce: 'post',
    generateBundle(_options, bundle) {
      let script = '';
      let style = '';
      for (const [name, file] of Object.entries(bundle)) {
        if (file.type === 'chunk') script += file.code.trim();
        else if (name.endsWith('.css')) style += String(file.source).trim();
        delete bundle[name];
      }
      script = script.replace(/<(?=!--|\/?script)/gi, '\\x3c'); // a script must not end itself
      const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; worker-src blob:; base-uri 'none'; form-action 'none'`;
      const parts: Record<string, string> = { policy, style, script };
      const source = readFileSync(new URL('page.html', import.meta.url), 'utf8').replace(
        /@@(policy|style|script)@@/g,
        (_, name: string) => parts[name],
      );
      this.emitFile({ type: 'asset', fileName: 'page.html', source });
    },
  };
}

export default defineConfig({
  plugins: [svelte(), onePage()],
  build: {
    target: 'es2022',
    outDir: process.env.OUT_DIR ? `${process.env.OUT_DIR}/page` : '../src/glassformer/render/page/static',
    emptyOutDir: false,
    cssCodeSplit: false,
    copyPublicDir: false,
    lib: { entry: 'src/page.ts', formats: ['iife'], name: 'page', fileName: 'page' },
  },
  test: { include: ['tests/**/*.test.ts'], environment: 'node' },
});
