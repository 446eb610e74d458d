// VitePress's own theme, with the colours of the pictures.
import theme from "vitepress/theme";
import "./palisade.css";

export default theme;
