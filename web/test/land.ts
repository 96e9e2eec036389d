// A lit land for the tests.

import { Land, type LandChunk } from '../src/mesh/land'
import { lightChunk } from '../src/mesh/light'
import { meshSection, type SectionMesh } from '../src/mesh/mesher'
import { copyVolume, newVolume } from '../src/mesh/volume'
import type { World } from '../src/world/world'

/** Returns the chunks of a world, lit. */
export function landOf(world: World): Land {
  const land = new Land()
  for (const { x, z, sections } of world.all()) lightChunk(land.add(x, z, 1, true, sections))
  return land
}

export function meshOf(land: Land, chunk: LandChunk, section: number): SectionMesh {
  const volume = newVolume()
  copyVolume(land, chunk, section, volume)
  return meshSection(volume)
}
