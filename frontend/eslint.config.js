/** Run from the root of the repository: eslint --config frontend/eslint.config.js src/agcd/app/web/static tests/frontend */

import js from "@eslint/js";
import globals from "globals";

const PAGE = "src/agcd/app/web/static";

/** Imports point down: pages → components → lib. */
const only = (folder, ...forbidden) => ({
  files: [`${PAGE}/${folder}/*.js`],
  rules: { "no-restricted-imports": ["error", { patterns: forbidden.map((one) => `**/${one}/*`) }] },
});

export default [
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2023, sourceType: "module" },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "array-callback-return": "error",
      curly: ["error", "multi-line"],
      eqeqeq: "error",
      "max-len": ["error", { code: 120 }],
      "max-lines": ["error", { max: 300, skipBlankLines: true, skipComments: true }],
      "max-lines-per-function": ["error", { max: 60 }],
      "no-console": "error",
      "no-else-return": "error",
      "no-eval": "error",
      "no-implicit-coercion": "error",
      "no-implied-eval": "error",
      "no-param-reassign": "error",
      "no-shadow": "error",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "no-use-before-define": ["error", { functions: false, classes: true, variables: false }],
      "no-useless-return": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-arrow-callback": "error",
      "prefer-const": "error",
      "prefer-template": "error",
      // Data reach the document as text, never as HTML.
      "no-restricted-properties": ["error", ...["innerHTML", "outerHTML", "insertAdjacentHTML"].map((property) =>
        ({ property, message: "Names come from people: build elements with h()." }))],
    },
  },
  { files: [`${PAGE}/**/*.js`], languageOptions: { globals: globals.browser } },
  only("lib", "components", "pages"),
  only("components", "pages"),
  only("pages", "pages"),
  {
    files: ["tests/frontend/*.js"],
    languageOptions: { globals: globals.node },
    rules: { "max-lines-per-function": "off" },
  },
];
