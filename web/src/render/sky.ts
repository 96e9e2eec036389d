// The sky: one triangle behind everything (gradient, sun, moon, stars) and a flat layer of square clouds.

import type { PerspectiveCamera } from '../gl/camera'
import { Attribute, Geometry } from '../gl/geometry'
import { identity, translation, type Matrix } from '../gl/matrix'
import { Mesh, type Material } from '../gl/mesh'
import { Program } from '../gl/program'
import { floor } from '../gl/shapes'
import { MURK_GLSL, NOISE_GLSL, SKY_GLSL, air } from './glsl'

const SKY_VERTEX = /* glsl */ `
precision highp float;
uniform mat4 towards; // from clip space to directions in the world
in vec2 position;
out vec3 ray;
void main() {
  vec4 p = towards * vec4(position, 1.0, 1.0);
  ray = p.xyz / p.w;
  gl_Position = vec4(position, 1.0, 1.0);
}
`

const SKY_FRAGMENT = /* glsl */ `
precision highp float;
in vec3 ray;
out vec4 colour_;
uniform float daylight, submerged, time, rain;
${MURK_GLSL}
${SKY_GLSL}
${NOISE_GLSL}
// coordinates on a square sprite that faces the direction f: −1 to 1 within it
vec2 onSprite(vec3 d, vec3 f, float size) {
  vec3 right = normalize(cross(vec3(0.0, 0.0, 1.0), f));
  vec3 up = cross(f, right);
  return vec2(dot(d, right), dot(d, up)) / (max(dot(d, f), 1e-3) * size);
}
void main() {
  vec3 d = normalize(ray);
  vec3 c = skyColour(d), grey = c;
  float night = (1.0 - daylight) * (1.0 - daylight);
  if (night > 0.02) {
    // stars turn with the sun; some cells of a cube around the camera have one
    float a = atan(sunward.y, sunward.x);
    vec3 s = vec3(d.x * cos(a) + d.y * sin(a), -d.x * sin(a) + d.y * cos(a), d.z);
    vec3 m = abs(s);
    vec2 p = m.x > m.y && m.x > m.z ? s.yz / m.x + 3.0 * sign(s.x) : m.y > m.z ? s.xz / m.y + 9.0 * sign(s.y) : s.xy / m.z + 15.0 * sign(s.z);
    vec2 cell = floor(p * 46.0);
    vec2 within = fract(p * 46.0) - 0.5;
    float pick = hash2(cell);
    vec2 off = (vec2(hash2(cell + 7.1), hash2(cell + 3.7)) - 0.5) * 0.7;
    float bright = step(0.86, pick) * (0.35 + 0.65 * hash2(cell + 1.3));
    float dot_ = step(max(abs(within.x - off.x), abs(within.y - off.y)), 0.05 + 0.05 * hash2(cell + 2.2));
    float twinkle = 0.75 + 0.25 * sin(time * 2.0 + pick * 300.0);
    c += vec3(0.9, 0.95, 1.0) * bright * dot_ * twinkle * night * smoothstep(-0.05, 0.25, d.y);
  }
  vec2 p = onSprite(d, sunward, 0.075);
  float square = max(abs(p.x), abs(p.y));
  if (dot(d, sunward) > 0.0) {
    c = mix(c, mix(vec3(1.0, 0.72, 0.4), vec3(1.0, 0.97, 0.84), smoothstep(0.0, 0.3, sunward.y)), step(square, 1.0) * smoothstep(-0.1, 0.0, sunward.y));
    c += vec3(1.0, 0.85, 0.6) * 0.28 * exp(-0.55 * max(square - 1.0, 0.0)) * smoothstep(-0.1, 0.1, sunward.y);
  }
  vec3 moonward = -sunward;
  vec2 q = onSprite(d, moonward, 0.055);
  if (dot(d, moonward) > 0.0) {
    float face = max(abs(q.x), abs(q.y));
    vec2 pixel = floor((q * 0.5 + 0.5) * 8.0);
    float crater = hash2(pixel + 5.0) > 0.72 ? 0.82 : 1.0;
    float shown = step(face, 1.0) * smoothstep(-0.1, 0.05, moonward.y);
    c = mix(c, vec3(0.86, 0.9, 0.98) * crater, shown * (0.25 + 0.75 * night));
    c += vec3(0.3, 0.38, 0.56) * 0.4 * exp(-0.45 * max(face - 1.0, 0.0)) * night * smoothstep(-0.1, 0.1, moonward.y);
  }
  c = mix(c, grey, rain); // no sun, moon or stars
  c += (hash2(gl_FragCoord.xy) - 0.5) / 255.0; // dithering against banding
  colour_ = vec4(mix(c, murkAlong(d), submerged), 1.0);
}
`

const CLOUD_VERTEX = /* glsl */ `
precision highp float;
uniform mat4 modelMatrix, viewMatrix, projectionMatrix;
uniform vec3 cameraPosition;
uniform vec2 drift;
in vec3 position;
out vec2 place;
out vec3 relative;
void main() {
  vec4 world = modelMatrix * vec4(position, 1.0);
  relative = world.xyz - cameraPosition;
  place = relative.xz + drift;
  gl_Position = projectionMatrix * viewMatrix * world;
}
`

const CLOUD_FRAGMENT = /* glsl */ `
precision highp float;
in vec2 place;
in vec3 relative;
out vec4 colour_;
uniform vec3 skyLight;
uniform float daylight, submerged, rain;
${SKY_GLSL}
${NOISE_GLSL}
void main() {
  vec2 cell = floor(place / 11.0);
  float n = 0.62 * smoothNoise(cell * 0.13) + 0.28 * smoothNoise(cell * 0.37 + 31.0) + 0.1 * hash2(cell);
  float reach = length(relative.xz);
  float fade = 1.0 - smoothstep(380.0, 900.0, reach);
  float alpha = step(0.56 - 0.3 * rain, n) * fade * 0.78;
  if (alpha < 0.01) discard;
  vec3 white = mix(vec3(0.25, 0.3, 0.43), vec3(0.97, 0.98, 1.0), daylight) * mix(vec3(1.0), skyLight, 0.4) * (1.0 - 0.3 * rain);
  vec3 d = relative / max(length(relative), 1e-3);
  vec3 c = mix(skyColour(d), white, 0.85) + glow * glowing * 0.25;
  colour_ = vec4(min(c, 1.0), alpha * (1.0 - submerged));
}
`

const CLOUD_PERIOD = 11 * 512 // the drift wraps at this distance
const CLOUD_REACH = 950 // blocks
const SKY_PROGRAM = new Program(SKY_VERTEX, SKY_FRAGMENT)
const CLOUD_PROGRAM = new Program(CLOUD_VERTEX, CLOUD_FRAGMENT)

export class Sky {
  readonly meshes: readonly Mesh[]
  private readonly clouds: Mesh
  private readonly towards: { value: Matrix } = { value: identity() }
  private readonly drift = { value: [0, 0] }

  constructor(private readonly cloudHeight = 176) {
    const triangle = new Attribute(new Float32Array([-1, -1, 3, -1, -1, 3]), 2)
    const behind: Material = {
      program: SKY_PROGRAM,
      uniforms: { ...air, towards: this.towards },
      depthWrite: false,
    }
    // after the land, so that only uncovered pixels are drawn
    const dome = new Mesh(new Geometry({ attributes: { position: triangle } }), behind, 2)
    const layer: Material = {
      program: CLOUD_PROGRAM,
      uniforms: { ...air, drift: this.drift },
      transparent: true,
      depthWrite: false,
      side: 'both',
    }
    this.clouds = new Mesh(floor(CLOUD_REACH), layer, 2.5)
    this.meshes = [dome, this.clouds]
  }

  /** Updates the sky for the camera, which is at world position (x, z). */
  follow(camera: PerspectiveCamera, x: number, z: number, seconds: number): void {
    this.towards.value = camera.directions
    this.clouds.matrix = translation(x, this.cloudHeight, z)
    this.drift.value = [(x + seconds * 1.3) % CLOUD_PERIOD, z % CLOUD_PERIOD]
  }
}
