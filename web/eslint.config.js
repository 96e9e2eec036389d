// typescript-eslint's strict rules, with types, and rules on imports. Prettier formats, so no rule here is about layout.

import { defineConfig } from 'eslint/config'
import tseslint from 'typescript-eslint'

// The folders of src/, lowest first: a folder imports only itself and those before it.
// test/imports.test.ts finds cycles between the files of a folder.
const FOLDERS = [
  'motion',
  'world',
  'settings',
  'text',
  'player',
  'sound',
  'build',
  'net',
  'mesh',
  'gl',
  'render',
  'horizon',
  'map',
  'input',
  'hud',
  'game',
  'bench',
]

/** Texts are in src/text/: these calls take none of their own. */
const TEXT_LITERALS = [
  ['el', 'callee.name', 2],
  ['button', 'callee.name', 0],
  ['toast|setHint|setBanner|addNotice|showError', 'callee.property.name', 0],
  ['setAttribute', 'callee.property.name', 1, '[arguments.0.value=/^(aria-label|title|placeholder)$/]'],
].map(([name, callee, argument, more = '']) => ({
  selector: `CallExpression[${callee}=/^(${name})$/]${more}[arguments.${argument}.value=/[A-Za-z]{2}/]`,
  message: 'Texts are in src/text/, in every language.',
}))

function importsDownwards(folder, i) {
  const below = FOLDERS.slice(0, i).join('|')
  return {
    files: [`src/${folder}/**`],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: below ? `^\\.\\./(?!(${below})/)` : '^\\.\\./',
              message: `${folder}/ may only import ${below ? below.replaceAll('|', ', ') : 'itself'}: see FOLDERS in eslint.config.js.`,
            },
          ],
        },
      ],
    },
  }
}

export default defineConfig(
  { ignores: ['dist/'] },
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidOperator: true },
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
    },
  },
  FOLDERS.map(importsDownwards),
  { files: ['src/hud/**', 'src/game/**'], rules: { 'no-restricted-syntax': ['error', ...TEXT_LITERALS] } },
  // in a test, an assertion that is wrong fails the test
  { files: ['test/**'], rules: { '@typescript-eslint/no-non-null-assertion': 'off' } },
  { files: ['*.js'], extends: [tseslint.configs.disableTypeChecked] },
)
