// SPDX-License-Identifier: Apache-2.0
import { defineConfig, type HtmlTagDescriptor, type Plugin } from "vite";

// The dev server hands the socket and the API to a running sderl_web:
//   SDERL_WEB=http://127.0.0.1:8090 npm run dev      then open /#token=TOKEN
declare const process: { env: Record<string, string | undefined> };
const server = process.env["SDERL_WEB"] ?? "http://127.0.0.1:8090";

/** The page that an address without a page opens: fetched beside the program, and not after it. */
const FIRST_PAGE = "src/pages/groups/page.ts";

const firstPage: Plugin = {
  name: "first-page",
  transformIndexHtml: {
    order: "post",
    handler: (_, { bundle }) => {
      const chunks = Object.values(bundle ?? {}).filter((file) => file.type === "chunk");
      const page = chunks.find(({ facadeModuleId }) => facadeModuleId?.endsWith(FIRST_PAGE));
      const loaded = chunks.find(({ isEntry }) => isEntry)?.fileName;
      return [page?.fileName, ...(page?.imports ?? [])]
        .filter((file) => file !== undefined && file !== loaded)
        .map((file): HtmlTagDescriptor => ({
          tag: "link",
          attrs: { rel: "modulepreload", crossorigin: true, href: `./${file}` },
          injectTo: "head",
        }));
    },
  },
};

export default defineConfig(({ mode }) => ({
  base: "./",
  plugins: [firstPage],
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
