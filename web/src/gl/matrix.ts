// Matrices of 4 × 4 numbers, column by column as WebGL takes them. They have double precision, because places in the world are large.

export type Matrix = Float64Array

export function identity(): Matrix {
  return Float64Array.of(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1)
}

export function translation(x: number, y: number, z: number): Matrix {
  return Float64Array.of(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, x, y, z, 1)
}

export function scaling(x: number, y = x, z = x): Matrix {
  return Float64Array.of(x, 0, 0, 0, 0, y, 0, 0, 0, 0, z, 0, 0, 0, 0, 1)
}

export function rotationX(angle: number): Matrix {
  const [c, s] = [Math.cos(angle), Math.sin(angle)]
  return Float64Array.of(1, 0, 0, 0, 0, c, s, 0, 0, -s, c, 0, 0, 0, 0, 1)
}

export function rotationY(angle: number): Matrix {
  const [c, s] = [Math.cos(angle), Math.sin(angle)]
  return Float64Array.of(c, 0, -s, 0, 0, 1, 0, 0, s, 0, c, 0, 0, 0, 0, 1)
}

export function rotationZ(angle: number): Matrix {
  const [c, s] = [Math.cos(angle), Math.sin(angle)]
  return Float64Array.of(c, s, 0, 0, -s, c, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1)
}

/** Returns the projection of a camera that looks along −z: fieldOfView is its height in degrees, aspect is width / height. */
export function perspective(fieldOfView: number, aspect: number, near: number, far: number): Matrix {
  const y = 1 / Math.tan((fieldOfView * Math.PI) / 360)
  const depth = near - far
  return Float64Array.of(
    y / aspect,
    0,
    0,
    0,
    0,
    y,
    0,
    0,
    0,
    0,
    (near + far) / depth,
    -1,
    0,
    0,
    (2 * near * far) / depth,
    0,
  )
}

/** Returns a · b, which is into if that is given; it may not be a or b. */
export function multiply(a: Matrix, b: Matrix, into: Matrix = new Float64Array(16)): Matrix {
  for (let column = 0; column < 16; column += 4) {
    const [x = 0, y = 0, z = 0, w = 0] = [b[column], b[column + 1], b[column + 2], b[column + 3]]
    for (let row = 0; row < 4; row++) {
      into[column + row] = (a[row] ?? 0) * x + (a[4 + row] ?? 0) * y + (a[8 + row] ?? 0) * z + (a[12 + row] ?? 0) * w
    }
  }
  return into
}

/** Returns the product of all matrices: the last is what is done first. */
export function product(...matrices: Matrix[]): Matrix {
  return matrices.reduce((left, right) => multiply(left, right))
}

/** Returns a copy that moves nothing. */
export function withoutTranslation(matrix: Matrix): Matrix {
  const copy = matrix.slice()
  copy.fill(0, 12, 15)
  return copy
}

/** Returns the inverse of a matrix that has one, by Gauss and Jordan. */
export function inverse(matrix: Matrix): Matrix {
  const left = matrix.slice()
  const right = identity()
  for (let pivot = 0; pivot < 4; pivot++) {
    let largest = pivot
    for (let column = pivot; column < 4; column++) {
      if (Math.abs(left[4 * column + pivot] ?? 0) > Math.abs(left[4 * largest + pivot] ?? 0)) largest = column
    }
    for (const side of [left, right]) {
      const moved = side.slice(4 * pivot, 4 * pivot + 4)
      side.copyWithin(4 * pivot, 4 * largest, 4 * largest + 4)
      side.set(moved, 4 * largest)
    }
    const divisor = left[5 * pivot] ?? 0
    for (const side of [left, right]) {
      for (let row = 0; row < 4; row++) side[4 * pivot + row] = (side[4 * pivot + row] ?? 0) / divisor
    }
    for (let column = 0; column < 4; column++) {
      const factor = left[4 * column + pivot] ?? 0
      if (column === pivot || factor === 0) continue
      for (const side of [left, right]) {
        for (let row = 0; row < 4; row++) {
          side[4 * column + row] = (side[4 * column + row] ?? 0) - factor * (side[4 * pivot + row] ?? 0)
        }
      }
    }
  }
  return right
}

/** Returns what a matrix makes of a point; for a projection, divided by w. */
export function transform(matrix: Matrix, x: number, y: number, z: number): [x: number, y: number, z: number] {
  const row = (i: number) =>
    (matrix[i] ?? 0) * x + (matrix[4 + i] ?? 0) * y + (matrix[8 + i] ?? 0) * z + (matrix[12 + i] ?? 0)
  const w = row(3)
  return [row(0) / w, row(1) / w, row(2) / w]
}
