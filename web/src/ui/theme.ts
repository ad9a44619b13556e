// SPDX-License-Identifier: Apache-2.0
// Light and dark by CSS variables; the canvas reads the same variables through `palette`.

export type Theme = "system" | "light" | "dark";
const KEY = "sderl.theme";

export interface Palette {
  dark: boolean;
  bg: string;
  surface: string;
  text: string;
  muted: string;
  faint: string;
  line: string;
  accent: string;
  ok: string;
  warning: string;
  critical: string;
  font: string;
}

export function storedTheme(): Theme {
  try {
    return asTheme(localStorage.getItem(KEY));
  } catch {
    return "system";
  }
}

export function asTheme(text: string | null | undefined): Theme {
  return text === "light" || text === "dark" ? text : "system";
}

export function applyTheme(theme: Theme, keep: boolean): void {
  document.documentElement.dataset["theme"] = theme;
  if (!keep) return;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // for this page only then
  }
}

export function onSystemTheme(changed: () => void): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

function isDark(): boolean {
  const theme = document.documentElement.dataset["theme"];
  return (
    theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches)
  );
}

export function readPalette(): Palette {
  // A variable's own text may be light-dark(..): the colour it comes to is read off an element.
  const probe = document.createElement("span");
  // At once, whatever transitions there are.
  probe.style.setProperty("transition", "none", "important");
  document.documentElement.append(probe);
  const style = getComputedStyle(probe);
  const get = (name: string) => {
    probe.style.color = `var(--${name})`;
    return style.color;
  };
  const palette: Palette = {
    dark: isDark(),
    bg: get("bg"),
    surface: get("surface"),
    text: get("text"),
    muted: get("muted"),
    faint: get("faint"),
    line: get("line"),
    accent: get("accent"),
    ok: get("ok"),
    warning: get("warning"),
    critical: get("critical"),
    font: style.getPropertyValue("--font").trim(),
  };
  probe.remove();
  return palette;
}
