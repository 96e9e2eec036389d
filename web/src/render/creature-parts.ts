// The boxes of creatures, which bend as players do: the legs behind, and the arms, which are those in front. Wool is in the
// first colour of their skin, the face and the legs in the second one.

import type { Part } from './figure-parts'

const LEG: Part['boxes'] = [{ size: [3.2, 9, 3.2], at: [0, -4.5, 0], paint: 'trousers' }]

export const SHEEP: Part[] = [
  {
    joint: [0, 8, 0],
    boxes: [
      { size: [11, 9.5, 17], at: [0, 4.5, -1], paint: 'shirt' },
      { size: [9, 1.4, 14.5], at: [0, 9.8, -1], paint: 'shirt', brightness: 1.04 },
      { size: [2, 2.6, 1.4], at: [0, 5.5, -10], paint: 'shirt', brightness: 0.94 },
    ],
  },
  {
    joint: [0, 16, 8],
    boxes: [
      { size: [5.4, 6, 7], at: [0, 0.6, 2.2], paint: 'trousers' },
      { size: [6.6, 4, 5], at: [0, 3, 0.2], paint: 'shirt' },
      { size: [2.4, 1.5, 1.2], at: [-3.6, 2.2, 0.8], paint: 'trousers', brightness: 0.85 },
      { size: [2.4, 1.5, 1.2], at: [3.6, 2.2, 0.8], paint: 'trousers', brightness: 0.85 },
      { size: [0.4, 1.2, 1.2], at: [-2.7, 1.4, 3.6], paint: 'white' },
      { size: [0.4, 1.2, 1.2], at: [2.7, 1.4, 3.6], paint: 'white' },
      { size: [0.5, 1, 0.7], at: [-2.7, 1.3, 3.8], paint: 'eye' },
      { size: [0.5, 1, 0.7], at: [2.7, 1.3, 3.8], paint: 'eye' },
    ],
  },
  { joint: [3.2, 9, -7], boxes: LEG },
  { joint: [-3.2, 9, -7], boxes: LEG },
  { joint: [3.2, 9, 5], boxes: LEG },
  { joint: [-3.2, 9, 5], boxes: LEG },
]
