// SPDX-License-Identifier: Apache-2.0
import { installHooks } from "../ui/hooks";
import { parseRoute } from "../ui/router";
import { LOADERS } from "./pages";
import { Shell } from "./shell";
import { SocketTransport, type Transport } from "../store/socket";
import { Store } from "../store/store";
import { readToken } from "../store/token";

async function transport(): Promise<Transport> {
  if (import.meta.env.MODE === "fixture") {
    const { FixtureTransport } = await import("../dev/transport");
    return new FixtureTransport(location.search);
  }
  // Taken before anything else is done with the address.
  readToken();
  return new SocketTransport(document.baseURI, readToken);
}

async function main(): Promise<void> {
  // The page's files are fetched while the rest is put together.
  void LOADERS[parseRoute(location.hash).page]().catch(() => {});
  const store = new Store(await transport());
  installHooks(store);
  // The server's answer is on its way while the page is built.
  store.start();
  const shell = new Shell(store, document.getElementById("app") as HTMLElement);
  if (import.meta.env.DEV || import.meta.env.MODE === "fixture") Object.assign(window, { shell });
}

void main();
