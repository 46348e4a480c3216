import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

/** One script for the documentation's pages, its styles inside. */
export default defineConfig({
  plugins: [svelte({ compilerOptions: { css: 'injected' } })],
  build: {
    target: 'es2022',
    outDir: process.env.OUT_DIR ? `${process.env.OUT_DIR}/figures` : '../docs/site/static/figures',
    emptyOutDir: true,
    copyPublicDir: false,
    lib: { entry: 'src/figures/figures.ts', formats: ['iife'], name: 'figures', fileName: () => 'figures.js' },
  },
});
