// Light and colours for the time of day. The sun rises in the east (+X) at 6:00 and is highest at noon.

import { Color, type Vector3 } from 'three'
import { DAY_MINUTES } from '../world/clock'
import { air } from './glsl'

const DAY_ZENITH = new Color(0.22, 0.47, 0.86)
const DAY_HORIZON = new Color(0.69, 0.84, 0.97)
const NIGHT_ZENITH = new Color(0.036, 0.062, 0.15)
const NIGHT_HORIZON = new Color(0.16, 0.23, 0.39)
const DUSK_GLOW = new Color(1.0, 0.52, 0.22)
const DAY_LIGHT = new Color(1.0, 0.985, 0.95)
const DUSK_LIGHT = new Color(1.0, 0.78, 0.6)
const NIGHT_LIGHT = new Color(0.38, 0.46, 0.62)
const AMBIENT = new Color(0.028, 0.03, 0.038)
const RAIN = new Color(0.42, 0.44, 0.48)
const MURK = new Color(0.06, 0.24, 0.44)

const TILT = 0.35 // of the sun's path, to the south

function sunDirection(minutes: number, into: Vector3): Vector3 {
  const angle = (minutes / DAY_MINUTES) * 2 * Math.PI - Math.PI / 2
  return into.set(Math.cos(angle), Math.sin(angle), TILT * Math.cos(angle * 0.5 + 0.6)).normalize()
}

function smooth(from: number, to: number, x: number): number {
  const t = Math.min(1, Math.max(0, (x - from) / (to - from)))
  return t * t * (3 - 2 * t)
}

/** Sets the shared atmosphere uniforms for a time of day. brightness is a factor on the light at night and in caves. */
export function setDaytime(minutes: number, brightness: number): void {
  const sun = sunDirection(minutes, air.sunward.value)
  const day = smooth(-0.2, 0.16, sun.y)
  const dusk = smooth(-0.22, 0.02, sun.y) * (1 - smooth(0.08, 0.42, sun.y))
  air.daylight.value = day
  const rain = air.rain.value
  air.glowing.value = dusk * (1 - rain)
  air.glow.value.copy(DUSK_GLOW)
  air.zenith.value.lerpColors(NIGHT_ZENITH, DAY_ZENITH, day)
  air.horizon.value.lerpColors(NIGHT_HORIZON, DAY_HORIZON, day)
  const grey = rain * 0.85 * day
  air.zenith.value.lerp(RAIN, grey)
  air.horizon.value.lerp(RAIN, grey)
  air.ambient.value.copy(AMBIENT).multiplyScalar(brightness * brightness)
  const light = air.skyLight.value.copy(NIGHT_LIGHT).multiplyScalar(brightness)
  light
    .lerp(DAY_LIGHT, day)
    .lerp(DUSK_LIGHT, dusk * 0.45 * day)
    .multiplyScalar(1 - 0.32 * rain * day)
  air.murk.value.copy(MURK).multiplyScalar(0.12 + 0.88 * day)
}
