import { svelte } from '@sveltejs/vite-plugin-svelte';
import type { Plugin } from 'vite';
import { defineConfig } from 'vite';

/** The server knows its files by flat names, the first of them index.html. */
function named(): Plugin {
  return {
    name: 'named',
    enforce: 'post',
    generateBundle(_options, bundle) {
      bundle['bench.html'].fileName = 'index.html';
    },
  };
}

export default defineConfig({
  plugins: [svelte(), named()],
  base: '/',
  build: {
    target: 'es2022',
    outDir: process.env.OUT_DIR ? `${process.env.OUT_DIR}/bench` : '../src/glassformer/workbench/static',
    emptyOutDir: true,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: 'bench.html',
      output: {
        entryFileNames: 'bench.js',
        chunkFileNames: '[name].js',
        assetFileNames: '[name][extname]',
      },
    },
  },
});
