import { describe, expect, test } from 'vitest'
import { PerspectiveCamera } from '../src/gl/camera'
import { Geometry } from '../src/gl/geometry'
import { identity, inverse, multiply, perspective, product, rotationX, rotationY, rotationZ } from '../src/gl/matrix'
import { scaling, transform, translation } from '../src/gl/matrix'
import { Mesh, drawOrder } from '../src/gl/mesh'
import { Program, explain } from '../src/gl/program'
import { boxTriangles, cubeEdges, floor } from '../src/gl/shapes'
import { hash } from '../src/world/hash'

const close = (actual: ArrayLike<number>, wanted: ArrayLike<number>) => {
  for (let i = 0; i < wanted.length; i++) expect(actual[i]).toBeCloseTo(wanted[i]!, 9)
}

describe('matrices', () => {
  test('turn and move points, the last first', () => {
    close(transform(rotationX(Math.PI / 2), 1, 2, 3), [1, -3, 2])
    close(transform(rotationY(Math.PI / 2), 1, 2, 3), [3, 2, -1])
    close(transform(rotationZ(Math.PI / 2), 1, 2, 3), [-2, 1, 3])
    close(transform(product(translation(10, 0, 0), rotationY(Math.PI), scaling(2)), 1, 1, 1), [8, 2, -2])
  })

  test('a projection has the near plane at −1, the far plane at 1, and the field of view from edge to edge', () => {
    const projection = perspective(90, 2, 0.5, 100)
    close(transform(projection, 0, 0, -0.5), [0, 0, -1])
    close(transform(projection, 0, 0, -100), [0, 0, 1])
    close(transform(projection, 20, 10, -10).slice(0, 2), [1, 1])
  })

  test('a matrix times its inverse changes nothing', () => {
    for (let seed = 0; seed < 30; seed++) {
      const matrix = Float64Array.from({ length: 16 }, (_, i) => hash(seed, i, 5) - 0.5)
      close(multiply(matrix, inverse(matrix)), identity())
    }
    const swapped = Float64Array.of(0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0) // without a pivot on the diagonal
    close(multiply(swapped, inverse(swapped)), identity())
  })
})

function cameraAt(x: number, y: number, z: number, yaw = 0, pitch = 0): PerspectiveCamera {
  const camera = new PerspectiveCamera(90, 0.1, 100)
  camera.place(x, y, z, yaw, pitch)
  return camera
}

describe('a camera', () => {
  test('looks along −z, and turns to the left and up', () => {
    expect(cameraAt(1, 2, 3).depth(1, 2, -7)).toBeCloseTo(10)
    expect(cameraAt(0, 0, 0, Math.PI / 2).depth(-10, 0, 0)).toBeCloseTo(10)
    expect(cameraAt(0, 0, 0, 0, Math.PI / 2).depth(0, 10, 0)).toBeCloseTo(10)
  })

  test('sees a sphere if, and only if, a part of it can be in the picture', () => {
    const camera = cameraAt(5, 0, 0)
    expect(camera.sees(5, 0, -10, 1)).toBe(true)
    expect(camera.sees(5, 0, 3, 2)).toBe(false) // behind
    expect(camera.sees(5, 0, 3, 4)).toBe(true)
    expect(camera.sees(5 + 12, 0, -10, 1)).toBe(false) // beside
    expect(camera.sees(5 + 11, 0, -10, 1)).toBe(true)
    expect(camera.sees(5, -12, -10, 1)).toBe(false)
    expect(camera.sees(5, 0, -103, 2)).toBe(false) // too far
  })

  test('has the directions of the corners of the picture, wherever it is', () => {
    close(
      transform(cameraAt(1000, 9, 7).directions, 1, -1, 1).map((n, _, [, , z]) => n / -z!),
      [1, -1, -1],
    )
  })
})

test('meshes are drawn by their order; then opaque ones from front to back, and transparent ones from back to front', () => {
  const camera = cameraAt(0, 0, 0)
  camera.originX = 4096 // meshes are in the world
  const program = new Program('', '')
  const names = new Map<Mesh, string>()
  const mesh = (name: string, order: number, z: number, transparent = false) => {
    const made = new Mesh(new Geometry({}), { program, uniforms: {}, transparent }, order)
    made.matrix = translation(4096, 0, z)
    names.set(made, name)
    return made
  }
  const hidden = mesh('hidden', 0, -1)
  hidden.visible = false
  const behind = mesh('behind', 0, 50)
  behind.bounds = { middle: [0, 0, 0], radius: 1 }
  const ahead = mesh('ahead', 0, 50)
  ahead.bounds = { middle: [0, 0, -60], radius: 1 }
  const land = [mesh('far', 1, -9), mesh('near', 1, -2), hidden, behind, ahead]
  const water = [mesh('near water', 2, -2, true), mesh('far water', 2, -9, true)]
  const drawn = drawOrder([water, land], camera)
  expect(drawn.map((some) => names.get(some))).toEqual(['ahead', 'near', 'far', 'far water', 'near water'])
  expect([hidden.drawn, behind.drawn, ahead.drawn]).toEqual([false, false, true])
})

test('an error of the compiler has the line of the source', () => {
  const log = "ERROR: 0:2: 'x' : undeclared identifier\nERROR: 1 compilation errors.  No code generated.\n\0"
  expect(explain(log, '#version 300 es\n  int y = x;\n')).toBe(
    "ERROR: 0:2: 'x' : undeclared identifier\n  int y = x;\nERROR: 1 compilation errors.  No code generated.",
  )
})

describe('shapes', () => {
  /** Returns the normals of triangles, of length 1, by the order of their corners. */
  const normalsOf = (corners: ArrayLike<number>) =>
    Array.from({ length: corners.length / 9 }, (_, i) => {
      const at = (corner: number, axis: number) => corners[9 * i + 3 * corner + axis]!
      const [a, b] = [1, 2].map((corner) => [0, 1, 2].map((axis) => at(corner, axis) - at(0, axis)))
      const cross = [0, 1, 2].map((n) => a![(n + 1) % 3]! * b![(n + 2) % 3]! - a![(n + 2) % 3]! * b![(n + 1) % 3]!)
      return cross.map((n) => n / Math.hypot(...cross))
    })

  test('the triangles of a box face outwards, and are on its six sides', () => {
    const { positions, normals } = boxTriangles([2, 4, 6], [10, 20, 30])
    expect(positions).toHaveLength(108)
    normalsOf(positions).forEach((normal, i) => {
      for (const corner of [0, 1, 2]) {
        const from = 9 * i + 3 * corner
        close(normals.slice(from, from + 3), normal)
        const out = normal.reduce((sum, n, axis) => sum + n * (positions[from + axis]! - [10, 20, 30][axis]!), 0)
        expect(out).toBeCloseTo([1, 2, 3][normal.findIndex((n) => Math.abs(n) > 0.5)]!)
      }
    })
    expect(new Set(normals.join().match(/-?\d,-?\d,-?\d/g)).size).toBe(6)
  })

  test('a floor is seen from above', () => {
    const { attributes, index } = floor(7)
    const corners = [...index!.values].flatMap((i) => [...attributes.position!.values.slice(3 * i, 3 * i + 3)])
    for (const normal of normalsOf(corners)) close(normal, [0, 1, 0])
  })

  test('a cube has twelve edges', () => {
    const ends = [...cubeEdges(2).attributes.position!.values]
    const edges = new Set(Array.from({ length: 12 }, (_, i) => ends.slice(6 * i, 6 * i + 6).join()))
    expect(edges.size).toBe(12)
    expect(ends).toHaveLength(72)
    for (const edge of edges) {
      const [x, y, z, x2, y2, z2] = edge.split(',').map(Number)
      expect(Math.hypot(x! - x2!, y! - y2!, z! - z2!)).toBe(2)
    }
  })
})
