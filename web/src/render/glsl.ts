// GLSL snippets shared by several materials, and the uniforms they read. There is one set of uniforms, updated once per
// frame.

import type { Vector } from '../gl/vector'

const vector = (x: number, y = x, z = x): { value: Readonly<Vector> } => ({ value: [x, y, z] })

/** The current state of the atmosphere; all materials share these objects. */
export const air = {
  zenith: vector(1),
  horizon: vector(1),
  glow: vector(1), // around a low sun
  glowing: { value: 0 },
  sunward: vector(0, 1, 0),
  /** The light of the sky, as a factor on colours. */
  skyLight: vector(1),
  /** The light where there is no other, as a factor on colours. */
  ambient: vector(1),
  /** The light of the block in the player's hand: 1 for that of a lamp, 0 for none. */
  lamp: { value: 0 },
  daylight: { value: 1 }, // 0 at night, 1 by day
  /** The distances at which fog begins and is complete, in blocks. */
  fog: { value: [100, 160] },
  /** 1 if the camera is under water: fog is near and blue. */
  submerged: { value: 0 },
  murk: vector(0.05, 0.2, 0.4),
  time: { value: 0 }, // seconds
  rain: { value: 0 }, // 0 to 1: the sky is grey
}

/** The colour of the sky along a direction. Fog uses it too, so that land fades into the sky behind it. */
export const SKY_GLSL = /* glsl */ `
uniform vec3 zenith, horizon, glow, sunward;
uniform float glowing;
vec3 skyColour(vec3 d) {
  float up = max(d.y, 0.0);
  vec3 c = mix(horizon, zenith, 1.0 - exp(-3.2 * up));
  c = mix(c, horizon * 0.82, smoothstep(0.0, -0.5, d.y));
  vec2 flat_ = normalize(d.xz + vec2(1e-5));
  vec2 sun = normalize(sunward.xz + vec2(1e-5));
  float toward = 0.5 + 0.5 * dot(flat_, sun);
  float band = exp(-5.0 * abs(d.y)) * toward * toward;
  float halo = pow(max(dot(d, sunward), 0.0), 6.0);
  return mix(c, glow, glowing * clamp(0.85 * band + 0.5 * halo, 0.0, 1.0));
}
`

export const FOG_GLSL = /* glsl */ `
uniform vec2 fog;
uniform float submerged;
uniform vec3 murk;
vec3 fogged(vec3 colour, vec3 relative) {
  float distance_ = length(relative);
  vec3 d = relative / max(distance_, 1e-4);
  float flat_ = length(relative.xz);
  float clear = 1.0 - smoothstep(fog.x, fog.y, flat_);
  vec3 dry = mix(skyColour(d), colour, clear);
  vec3 wet = mix(murk, colour, exp(-0.09 * distance_));
  return mix(dry, wet, submerged);
}
`

export const NOISE_GLSL = /* glsl */ `
float hash2(vec2 p) {
  vec3 q = fract(vec3(p.xyx) * vec3(0.1031, 0.1030, 0.0973));
  q += dot(q, q.yzx + 33.33);
  return fract((q.x + q.y) * q.z);
}
float smoothNoise(vec2 p) {
  vec2 i = floor(p), f = fract(p);
  f = f * f * (3.0 - 2.0 * f);
  return mix(mix(hash2(i), hash2(i + vec2(1, 0)), f.x), mix(hash2(i + vec2(0, 1)), hash2(i + vec2(1, 1)), f.x), f.y);
}
`
