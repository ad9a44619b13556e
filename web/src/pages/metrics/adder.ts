// SPDX-License-Identifier: Apache-2.0
// The form that adds a chart: a metric, and of what.
import { children as fill, h, set, text as setText } from "../../lib/dom";
import { natural } from "../../lib/natural";
import type { FrontChart, Metric, Place } from "../../model/protocol";
import type { Ctx } from "../../ui/ctx";
import { options } from "../../ui/options";
import { formTag, metricOf, offered, tagsOf } from "./model";
import { family } from "../../model/places";

const LIST = "metrics-known";
const PLACES = "metrics-places";
const KINDS = [
  ["cluster", "The cluster"],
  ["family", "A family of nodes"],
  ["group", "A group"],
  ["node", "A node"],
] as const;

export class Adder {
  readonly root: HTMLElement;
  private readonly metric = h("input", {
    class: "input metric-name",
    type: "text",
    list: LIST,
    maxlength: 640,
    placeholder: "Metric",
    "aria-label": "Metric",
    autocomplete: "off",
    "data-search": "",
  });
  private readonly tag = h("select", { class: "select", "aria-label": "Metrics with a tag" });
  private readonly kind = h(
    "select",
    { class: "select", "aria-label": "Of what" },
    ...KINDS.map(([value, title]) => h("option", { value }, title)),
  );
  private readonly name = h("input", {
    class: "input",
    type: "text",
    list: PLACES,
    maxlength: 255,
    "aria-label": "Its name",
    autocomplete: "off",
    hidden: true,
  });
  private readonly about = h("p", { class: "muted", role: "status" });
  private readonly known = h("datalist", { id: LIST });
  private readonly places = h("datalist", { id: PLACES });
  private metrics: readonly Metric[] = [];
  /** The tag that the page was for when the fields were filled last. */
  private pageTag: string | null = null;

  constructor(
    private readonly ctx: Ctx,
    private readonly added: (chart: FrontChart) => void,
  ) {
    this.metric.addEventListener("input", () => this.describe());
    this.tag.addEventListener("change", () => this.fillKnown());
    this.kind.addEventListener("change", () => this.update());
    this.root = h(
      "form",
      {
        class: "card metric-adder",
        "aria-label": "Add a chart",
        submit: (event) => {
          event.preventDefault();
          this.submit();
        },
      },
      h("h2", {}, "Add a chart"),
      h(
        "div",
        { class: "card-tools" },
        this.tag,
        this.metric,
        this.kind,
        this.name,
        h("button", { type: "submit", class: "button" }, "Add"),
      ),
      this.about,
      this.known,
      this.places,
    );
    this.update();
  }

  focus(): void {
    this.metric.focus();
  }

  /** With the tag that the page is for; what was chosen here stays until that is another. */
  offer(metrics: readonly Metric[], tag: string): void {
    const tags = tagsOf(metrics);
    const chosen = formTag(this.tag.value, tag, this.pageTag, tags);
    this.metrics = metrics;
    this.pageTag = tag;
    options(this.tag, "All tags", tags, chosen);
    this.fillKnown();
    this.describe();
  }

  private fillKnown(): void {
    fill(
      this.known,
      ...offered(this.metrics, this.tag.value).map(({ name, about, unit }) =>
        h("option", { value: name }, [about, unit].filter((text) => text !== "").join(", ")),
      ),
    );
  }

  /** The places there are, of the kind that is chosen. */
  update(): void {
    const kind = this.kind.value;
    const topology = this.ctx.store.shown.topology;
    const names =
      kind === "group"
        ? (topology?.groups ?? []).map((group) => group.name)
        : (topology?.nodes ?? []).map(({ name }) => (kind === "family" ? family(name) : name));
    const wanted = kind === "cluster" ? [] : [...new Set(names)].sort(natural);
    this.name.hidden = kind === "cluster";
    set(this.name, "placeholder", KINDS.find(([value]) => value === kind)?.[1] ?? "");
    if (this.places.childElementCount !== wanted.length || this.places.dataset["kind"] !== kind) {
      this.places.dataset["kind"] = kind;
      fill(this.places, ...wanted.map((value) => h("option", { value })));
    }
  }

  private describe(): void {
    const name = this.metric.value.trim();
    const metric = metricOf(this.metrics, name);
    setText(
      this.about,
      name === ""
        ? "A metric of the monitoring or of the application itself, such as util."
        : metric === undefined
          ? "There is no metric of that name."
          : [
              metric.about,
              metric.unit,
              metric.tags.length > 0 ? `tags: ${metric.tags.join(", ")}` : "",
              metric.for.length > 0 ? `for ${metric.for.join(", ")}` : "",
            ]
              .filter((text) => text !== "")
              .join("; "),
    );
  }

  private submit(): void {
    const metric = this.metric.value.trim();
    const place = this.chosen();
    if (metricOf(this.metrics, metric) === undefined) {
      this.metric.focus();
      this.ctx.toast(
        `There is no metric "${metric}": the list offers those that there are`,
        "info",
      );
    } else if (place === null) {
      this.name.focus();
      this.ctx.toast("Name the family, group or node first", "info");
    } else {
      this.added({ metric, place });
      this.metric.value = "";
      this.describe();
      this.metric.focus();
    }
  }

  private chosen(): Place | null {
    const kind = this.kind.value as Place["kind"];
    const name = this.name.value.trim();
    if (kind === "cluster") return { kind };
    return name === "" ? null : { kind, name };
  }
}
