// SPDX-License-Identifier: Apache-2.0
// Requests over plain HTTP, with the token, which no link could carry.
import { readToken } from "./token";

/** The answer to a path below the page's own; what is refused is an error with the server's words. */
export async function asked(path: string, init: RequestInit = {}): Promise<Response> {
  const token = readToken();
  const answer = await fetch(new URL(path, document.baseURI), {
    ...init,
    headers: {
      ...(init.headers as Record<string, string> | undefined),
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    },
  });
  if (!answer.ok) throw new Error(await refusal(answer));
  return answer;
}

export const getJson = async <T>(path: string): Promise<T> =>
  (await (await asked(path)).json()) as T;

/** The fields of a header are ASCII. */
const ascii = (name: string) => /^[!-~]{1,64}$/.test(name);

export async function postJson<T>(path: string, body: unknown, name = ""): Promise<T> {
  const answer = await asked(path, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(ascii(name) ? { "x-sderl-name": name } : {}),
    },
    body: JSON.stringify(body),
  });
  return (await answer.json()) as T;
}

export async function remove(path: string, name = ""): Promise<void> {
  await asked(path, {
    method: "DELETE",
    headers: ascii(name) ? { "x-sderl-name": name } : {},
  });
}

async function refusal(answer: Response): Promise<string> {
  const text = await answer.text();
  try {
    const { detail } = JSON.parse(text) as { detail?: string };
    return detail ?? text;
  } catch {
    return text || `The server answered ${answer.status}`;
  }
}
