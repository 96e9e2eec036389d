// The boxes of a figure, and their paints.

export type Vector = readonly [x: number, y: number, z: number]
export const PAINTS = ['shirt', 'trousers', 'skin', 'hair', 'white', 'eye', 'stripe', 'braces', 'cuffs', 'cap'] as const
export type Paint = (typeof PAINTS)[number]

interface Box {
  size: Vector // in pixels
  at: Vector // the centre, relative to the joint
  paint: Paint
  brightness?: number
}

const LEG: Box[] = [
  { size: [3.9, 12, 3.9], at: [0, -6, 0], paint: 'trousers' },
  { size: [4.2, 2.2, 4.8], at: [0, -10.9, 0.4], paint: 'trousers', brightness: 0.55 },
]
const ARM: Box[] = [
  { size: [3.8, 12, 3.8], at: [0, -5, 0], paint: 'skin' },
  { size: [4.1, 5, 4.1], at: [0, -1.4, 0], paint: 'shirt', brightness: 0.92 },
  { size: [4.3, 1.6, 4.3], at: [0, -3, 0], paint: 'cuffs', brightness: 0.92 },
]
/** The body, and the parts that bend: head, left leg, right leg, left arm, right arm. */
export const PARTS: { joint: Vector; boxes: Box[] }[] = [
  {
    joint: [0, 24, 0],
    boxes: [
      { size: [8, 12, 4], at: [0, -6, 0], paint: 'shirt' },
      { size: [8.2, 1.2, 4.2], at: [0, -11.4, 0], paint: 'trousers', brightness: 0.7 },
      { size: [8.2, 2.2, 4.2], at: [0, -5.4, 0], paint: 'stripe' },
      { size: [1.3, 10.6, 4.3], at: [-2.4, -5.3, 0], paint: 'braces' },
      { size: [1.3, 10.6, 4.3], at: [2.4, -5.3, 0], paint: 'braces' },
      { size: [3, 1.4, 0.2], at: [0, -1, 2], paint: 'shirt', brightness: 0.75 },
    ],
  },
  {
    joint: [0, 24, 0],
    boxes: [
      { size: [8, 8, 8], at: [0, 4, 0], paint: 'skin' },
      { size: [8.4, 2.4, 8.4], at: [0, 7.2, 0], paint: 'cap' },
      { size: [8.4, 5, 3], at: [0, 5, -2.8], paint: 'hair' },
      { size: [2, 1.4, 0.2], at: [-2, 4, 4], paint: 'white' },
      { size: [2, 1.4, 0.2], at: [2, 4, 4], paint: 'white' },
      { size: [1, 1.4, 0.3], at: [-1.5, 4, 4], paint: 'eye' },
      { size: [1, 1.4, 0.3], at: [1.5, 4, 4], paint: 'eye' },
      { size: [2.4, 0.6, 0.2], at: [0, 1.6, 4], paint: 'skin', brightness: 0.7 },
    ],
  },
  { joint: [2, 12, 0], boxes: LEG },
  { joint: [-2, 12, 0], boxes: LEG },
  { joint: [6, 23, 0], boxes: ARM },
  { joint: [-6, 23, 0], boxes: ARM },
]
