// The default theme of VitePress, with mermaid diagrams, and the recording of the demo on the first page.

import mermaidFile from "mermaid/dist/mermaid.min.js?url";
import { useData, withBase } from "vitepress";
import DefaultTheme from "vitepress/theme";
import { h, onMounted, ref, useId, watch } from "vue";
import "./style.css";

let loading;

/** Loads mermaid's own bundle, as a file: to bundle it again takes minutes. */
function loadMermaid() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    Object.assign(script, { src: mermaidFile, onload: resolve, onerror: reject });
    document.head.append(script);
  });
  return loading;
}

/** Draws a mermaid diagram in the colours of the theme. The library is loaded by pages with diagrams only. */
const Diagram = {
  props: { source: { type: String, required: true } },
  setup(props) {
    const { isDark } = useData();
    const drawing = ref("");
    const id = useId();
    const draw = async () => {
      await loadMermaid();
      mermaid.initialize({ startOnLoad: false, theme: isDark.value ? "dark" : "neutral" });
      const { svg } = await mermaid.render(`${id}-svg`, decodeURIComponent(props.source));
      drawing.value = svg;
    };
    onMounted(draw);
    watch(isDark, draw);
    return () => h("div", { class: "diagram", innerHTML: drawing.value });
  },
};

/** Plays the recording of `npm run demo` (bench/recording.ts). */
const Recording = {
  setup() {
    const screen = ref();
    onMounted(async () => {
      const [{ create }] = await Promise.all([
        import("asciinema-player"),
        import("asciinema-player/dist/bundle/asciinema-player.css"),
      ]);
      // The time of the poster is after the end, so it shows the last screen.
      create(withBase("/demo.cast"), screen.value, { poster: "npt:9:59", preload: true });
    });
    return () =>
      h("figure", { class: "recording" }, [
        h("div", { ref: screen, class: "screen" }),
        h("figcaption", ["A recording of ", h("code", "npm run demo"), " with pauses to read it"]),
      ]);
  },
};

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => app.component("Diagram", Diagram).component("Recording", Recording),
};
