// The texts of panels and tools, which are loaded with the first of these, after loadTexts. Translations have all texts in one file.

import { enLater } from './en-later'
import { translation } from './texts'

export const laterTexts = translation?.laterTexts ?? enLater
