// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vite";

// The dev server hands the socket and the API to a running sderl_web:
//   SDERL_WEB=http://127.0.0.1:8090 npm run dev      then open /#token=TOKEN
declare const process: { env: Record<string, string | undefined> };
const server = process.env["SDERL_WEB"] ?? "http://127.0.0.1:8090";

export default defineConfig(({ mode }) => ({
  base: "./",
  build: {
    outDir: mode === "fixture" ? "dist-fixture" : "../apps/sderl_web/priv/www",
    emptyOutDir: true,
    target: "es2022",
    // light-dark() is left to the browser.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    // Names keep their hash, so that a browser may keep what it has for ever.
    assetsDir: "assets",
    // Nothing inlined: the page's content policy forbids data: scripts and workers.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 400,
  },
  worker: { format: "es" as const },
  server: {
    proxy: {
      "/ws": { target: server, ws: true, changeOrigin: true },
      "/api": { target: server, changeOrigin: true },
      "/metrics": { target: server, changeOrigin: true },
    },
  },
  test: { include: ["test/**/*.test.ts"], environment: "node" },
}));
