/** Returns the drawing context of a canvas that has no other one. */
export function context2D(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const context = canvas.getContext('2d')
  if (!context) throw new Error('this browser has no 2D canvas')
  return context
}
