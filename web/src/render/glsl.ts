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
  /** The distance up to which land is drawn as blocks, in blocks. */
  edge: { value: 160 },
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

/** What is seen far away under water: it is brighter upwards. */
export const MURK_GLSL = /* glsl */ `
uniform vec3 murk;
vec3 murkAlong(vec3 d) { return murk * (0.95 + 0.4 * d.y); }
`

export const FOG_GLSL = /* glsl */ `
uniform vec2 fog;
uniform float submerged;
${MURK_GLSL}
vec3 fogged(vec3 colour, vec3 relative) {
  float distance_ = length(relative);
  vec3 d = relative / max(distance_, 1e-4);
  float flat_ = length(relative.xz);
  float clear = 1.0 - smoothstep(fog.x, fog.y, flat_);
  vec3 dry = mix(skyColour(d), colour, clear);
  vec3 wet = mix(murkAlong(d), colour, exp(-0.055 * distance_));
  return mix(dry, wet, submerged);
}
`

/** The light of the sun or the moon, which is opposite it, on a surface with the normal n. */
export const DIRECT_GLSL = /* glsl */ `
uniform float daylight;
float directLight(vec3 n) {
  float toSun = dot(n, sunward);
  return 0.1 * max(toSun, 0.0) * daylight + 0.3 * max(-toSun, 0.0) * (1.0 - daylight);
}
`

/**
 * The colour of water, near and far, seen from above along d, and how much it hides. tile is the colour of its texture, n its
 * normal, sky the share of the sky that lights it. away is 0 where single ripples are seen and 1 where they are not: what is below it
 * is taken for deep there, and all is hidden.
 */
export const WATER_GLSL = /* glsl */ `
vec4 waterColour(vec3 d, vec3 n, vec3 tile, vec3 light, float sky, float away) {
  float fresnel = 0.03 + 0.8 * pow(1.0 - abs(dot(d, n)), 4.0);
  vec3 r = reflect(d, n);
  r.y = abs(r.y);
  vec3 body = tile * vec3(0.62, 0.92, 1.0) * light;
  vec3 mirror = skyColour(r) * clamp(0.25 + sky, 0.0, 1.0);
  vec2 bright = vec2(max(dot(r, sunward), 0.0) * daylight, max(dot(r, -sunward), 0.0) * (1.0 - daylight));
  vec2 glints = pow(bright, mix(vec2(320.0, 160.0), vec2(160.0, 80.0), away)) * mix(vec2(0.8, 0.45), vec2(0.35, 0.2), away);
  glints *= smoothstep(0.75, 1.0, sky);
  vec3 c = mix(body, mirror, fresnel) + vec3(1.0, 0.93, 0.8) * glints.x + vec3(0.7, 0.82, 1.0) * glints.y;
  float alpha = clamp(0.7 + fresnel * 0.5 + glints.x + glints.y, 0.0, 0.97);
  return vec4(mix(c, mix(0.3 * body, c, alpha), away), mix(alpha, 1.0, away));
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
