// The material of far land. It is lit and coloured like the blocks nearby (see terrain-material.ts), without their textures.

import type { Material } from '../gl/mesh'
import { Program } from '../gl/program'
import type { Texture } from '../gl/texture'
import { DIRECT_GLSL, FOG_GLSL, NOISE_GLSL, SKY_GLSL, WATER_GLSL, air } from '../render/glsl'
import { HEIGHT_SCALE } from './mesh'
import { POINTS, SQUARE } from './tile'

const VERTEX = /* glsl */ `
precision highp float;
uniform mat4 modelMatrix, viewMatrix, projectionMatrix;
uniform vec3 cameraPosition;
uniform float level;
in vec4 corner;
in vec4 colour;
out vec3 relative, place;
out vec2 uv;
out vec4 built;
void main() {
  vec3 local = corner.xyz * vec3(${SQUARE}.0, 1.0 / ${HEIGHT_SCALE}.0, ${SQUARE}.0);
  place = (modelMatrix * vec4(local, 1.0)).xyz;
  if (colour.a > 0.5) { // what is built is at least a few pixels wide, or it would not be seen
    vec2 outward = vec2(mod(corner.w, 2.0), floor(corner.w / 2.0)) * 2.0 - 1.0;
    place.xz += outward * clamp(distance(place, cameraPosition) * 0.003 - 2.0, 0.0, 4.0);
  }
  relative = place - cameraPosition;
  uv = (corner.xz / level + 0.5) / ${POINTS}.0;
  built = colour;
  gl_Position = projectionMatrix * viewMatrix * vec4(place, 1.0);
}
`

const FRAGMENT = /* glsl */ `
precision highp float;
uniform sampler2D surface, normals, shown;
uniform vec3 skyLight, ambient;
in vec3 relative, place;
in vec2 uv;
in vec4 built;
out vec4 colour_;
${SKY_GLSL}
${DIRECT_GLSL}
${FOG_GLSL}
${NOISE_GLSL}
${WATER_GLSL}
const vec3 UP = vec3(0, 1, 0);
void main() {
  if (max(abs(relative.x), abs(relative.z)) < 900.0) {
    float near = texelFetch(shown, ivec2(floor(place.xz / 32.0)) & 63, 0).r;
    if (near > 0.0 && near >= hash2(gl_FragCoord.xy) * 0.99) discard;
  }
  vec4 land = texture(surface, uv);
  vec2 slope = texture(normals, uv).xy * 2.0 - 1.0;
  vec3 n = vec3(slope.x, sqrt(max(0.0, 1.0 - dot(slope, slope))), slope.y);
  vec3 flat_ = normalize(cross(dFdx(place), dFdy(place)));
  bool box = built.a > 0.5;
  if (box) n = flat_ * sign(dot(flat_, -relative));
  vec3 n2 = n * n;
  float side = n2.x * 0.76 + n2.y + n2.z * 0.87;
  vec3 light = skyLight * (0.95 * side + directLight(n)) + ambient;
  // slopes away from the sun are darker, as steps of blocks are with their occlusion
  light *= mix(1.0, 0.82 + 0.18 * smoothstep(-0.2, 0.6, dot(n, sunward) + (1.0 - daylight)), box ? 0.5 : 1.0);
  float far = length(relative.xz);
  float grain = hash2(floor(place.xz * 0.5)) - 0.5;
  float patch_ = smoothNoise(place.xz * 0.045) * 0.6 + smoothNoise(place.xz * 0.19 + place.y * 0.1) * 0.4;
  vec3 ground = (box ? built.rgb : land.rgb) * (0.93 + 0.14 * patch_ + 0.1 * grain * exp(-far * 0.004));
  vec3 c = ground * light;
  float water = box ? 0.0 : smoothstep(0.35, 0.65, land.a);
  if (water > 0.0) {
    vec3 open = skyLight * (0.95 + directLight(UP)) + ambient;
    c = mix(c, waterColour(normalize(relative), UP, land.rgb, open, 1.0, 1.0).rgb, water);
  }
  colour_ = vec4(fogged(min(c, 1.0), relative), 1.0);
}
`

const FLOOR_VERTEX = /* glsl */ `
precision highp float;
uniform mat4 modelMatrix, viewMatrix, projectionMatrix;
uniform vec3 cameraPosition;
in vec3 position;
out vec3 relative;
void main() {
  vec4 place = modelMatrix * vec4(position, 1.0);
  relative = place.xyz - cameraPosition;
  gl_Position = projectionMatrix * viewMatrix * place;
}
`

const FLOOR_FRAGMENT = /* glsl */ `
precision highp float;
uniform vec3 skyLight;
in vec3 relative;
out vec4 colour_;
${SKY_GLSL}
${FOG_GLSL}
void main() {
  colour_ = vec4(fogged(vec3(0.13, 0.2, 0.09) * skyLight, relative), 1.0);
}
`

const PROGRAM = new Program(VERTEX, FRAGMENT)

export const FLOOR_MATERIAL: Material = { program: new Program(FLOOR_VERTEX, FLOOR_FRAGMENT), uniforms: air }

export interface TileTextures {
  surface: Texture
  normals: Texture
}

export function makeMaterial(level: number, textures: TileTextures, shown: Texture): Material {
  return {
    program: PROGRAM,
    side: 'both', // where near land ends, the back of far land is seen through the gap
    uniforms: {
      ...air,
      level: { value: 1 << level },
      surface: { value: textures.surface },
      normals: { value: textures.normals },
      shown: { value: shown },
    },
  }
}
