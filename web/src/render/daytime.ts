// Light and colours for the time of day. The sun rises in the east (+X) at 6:00 and is highest at noon.

import { mixed, normalized, scaled, type Vector } from '../gl/vector'
import { DAY_MINUTES } from '../world/clock'
import { air } from './glsl'

const DAY_ZENITH: Vector = [0.22, 0.47, 0.86]
const DAY_HORIZON: Vector = [0.69, 0.84, 0.97]
const NIGHT_ZENITH: Vector = [0.036, 0.062, 0.15]
const NIGHT_HORIZON: Vector = [0.16, 0.23, 0.39]
const DUSK_GLOW: Vector = [1.0, 0.52, 0.22]
const DAY_LIGHT: Vector = [1.0, 0.985, 0.95]
const DUSK_LIGHT: Vector = [1.0, 0.78, 0.6]
const NIGHT_LIGHT: Vector = [0.38, 0.46, 0.62]
const AMBIENT: Vector = [0.028, 0.03, 0.038]
const RAIN: Vector = [0.42, 0.44, 0.48]
const MURK: Vector = [0.06, 0.24, 0.44]

const TILT = 0.35 // of the sun's path, to the south

function sunDirection(minutes: number): Vector {
  const angle = (minutes / DAY_MINUTES) * 2 * Math.PI - Math.PI / 2
  return normalized([Math.cos(angle), Math.sin(angle), TILT * Math.cos(angle * 0.5 + 0.6)])
}

function smooth(from: number, to: number, x: number): number {
  const t = Math.min(1, Math.max(0, (x - from) / (to - from)))
  return t * t * (3 - 2 * t)
}

/** Sets the shared atmosphere uniforms for a time of day. brightness is a factor on the light at night and in caves. */
export function setDaytime(minutes: number, brightness: number): void {
  const sun = sunDirection(minutes)
  const [, height] = sun
  const day = smooth(-0.2, 0.16, height)
  const dusk = smooth(-0.22, 0.02, height) * (1 - smooth(0.08, 0.42, height))
  const rain = air.rain.value
  const grey = rain * 0.85 * day
  air.sunward.value = sun
  air.daylight.value = day
  air.glowing.value = dusk * (1 - rain)
  air.glow.value = DUSK_GLOW
  air.zenith.value = mixed(mixed(NIGHT_ZENITH, DAY_ZENITH, day), RAIN, grey)
  air.horizon.value = mixed(mixed(NIGHT_HORIZON, DAY_HORIZON, day), RAIN, grey)
  air.ambient.value = scaled(AMBIENT, brightness * brightness)
  const light = mixed(mixed(scaled(NIGHT_LIGHT, brightness), DAY_LIGHT, day), DUSK_LIGHT, dusk * 0.45 * day)
  air.skyLight.value = scaled(light, 1 - 0.32 * rain * day)
  air.murk.value = scaled(MURK, 0.12 + 0.88 * day)
}
