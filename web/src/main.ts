import { mount } from "svelte";
import "katex/dist/katex.css";
import inter from "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2?url";
import App from "./App.svelte";
import { figureFont } from "./drawing/figureFont";
import "./fonts.css";
import "./style.css";

figureFont.url = inter;
mount(App, { target: document.getElementById("page")! });
