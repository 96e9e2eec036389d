// The materials of the land: one vertex shader that unpacks the mesher's two words, one fragment shader per pass.
// Colours are multiplied in sRGB, which suits pixel art.

import type { Material } from '../gl/mesh'
import { Program } from '../gl/program'
import { Texture } from '../gl/texture'
import { SIZE } from '../world/coords'
import { DIRECT_GLSL, FOG_GLSL, NOISE_GLSL, SKY_GLSL, WATER_GLSL, air } from './glsl'
import { PAGES_PER_ROW, PAGE_QUADS } from './terrain-buffer'
import { LAYERS, drawAllTiles } from './tiles'

const VERTEX = /* glsl */ `
precision highp float;
precision highp int;
uniform mat4 modelMatrix, modelViewMatrix, projectionMatrix;
uniform vec3 cameraPosition;
uniform float time;
uniform highp isampler2D chunks; // of each page of the buffer, modulo 2^16
uniform vec2 origin; // the chunk from which the mesh is placed, modulo 2^16
in uvec2 words;
out vec3 relative;   // from the camera
out vec3 place;      // in the world, modulo the render origin
out vec2 uv;
out vec4 shade;      // occlusion, sky, glow, water; of what is not water, whether it is under water
flat out int face;
flat out float layer;

// Moves local from a corner of the block to a corner of the plant's quad, which is slightly off the block's centre. The
// offset depends only on x and z, so that stacked plants line up. moved: the wind moves this vertex (see mesher.ts).
void growPlant(inout vec3 local, vec3 chunk, int corner, bool moved) {
  float far = corner == 1 || corner == 2 ? 1.0 : 0.0;
  vec2 cell = local.xz - vec2(far, face == 6 ? far : 1.0 - far);
  uint h = uint(cell.x) * 374761393u + uint(cell.y) * 668265263u;
  h = (h ^ (h >> 13)) * 1274126177u;
  h ^= h >> 16;
  vec3 chance = vec3(h & 255u, (h >> 8) & 255u, (h >> 16) & 255u) / 255.0 - 0.5;
  bool mirrored = (h >> 24 & 1u) == 1u;
  // slightly inside the texture, because its edges repeat
  uv = mix(vec2(0.005), vec2(0.995), vec2(mirrored ? 1.0 - far : far, corner >= 2 ? 0.0 : 1.0));
  vec2 middle = cell + 0.5;
  local.xz = middle + (local.xz - middle) * 0.88 + chance.xy * 0.3;
  // three of four plants end before the land that the mesher meshes without them
  float away = distance((modelMatrix * vec4(chunk + vec3(middle.x, 0.0, middle.y), 1.0)).xz, cameraPosition.xz);
  if ((h >> 25 & 3u) != 0u && corner >= 2) local.y -= smoothstep(48.0, 64.0, away);
  if (!moved) return;
  vec2 at = (modelMatrix * vec4(chunk + local, 1.0)).xz;
  float gust = 0.6 + 0.4 * sin(time * 0.7 + at.x * 0.13 + at.y * 0.09);
  vec2 wind = vec2(sin(time * 1.9 + at.x * 0.8 + at.y * 0.5), cos(time * 1.6 + at.y * 0.9 - at.x * 0.4));
  local += vec3(0.055 * gust * wind.x, 0.35 * chance.z - 0.08, 0.055 * gust * wind.y);
}

void main() {
  uint a = words.x, b = words.y;
  int page = gl_VertexID / ${4 * PAGE_QUADS};
  ivec2 far = texelFetch(chunks, ivec2(page % ${PAGES_PER_ROW}, page / ${PAGES_PER_ROW}), 0).xy - ivec2(origin);
  far = (far << 16) >> 16;
  vec3 chunk = vec3(far.x * ${SIZE}, 0, far.y * ${SIZE});
  vec3 local = vec3(a & 63u, (a >> 6) & 63u, (a >> 12) & 63u) + vec3((b >> 22) & 15u, (b >> 26) & 15u, (b >> 30) | ((b >> 6) & 12u)) / 16.0;
  face = int((a >> 18) & 7u);
  int corner = int((a >> 21) & 3u);
  float low = face < 6 ? float((a >> 25) & 1u) : 0.0;
  shade = vec4(float((a >> 23) & 3u) / 3.0, float((b >> 10) & 63u) / 60.0, float((b >> 16) & 63u) / 60.0, float((a >> 26) & 1u));
  layer = float(b & 255u);
  uv = face < 2 ? local.zy : face < 4 ? local.xz : local.xy;
  uv.y = -uv.y;
  local.y -= 0.125 * low;
  if (face >= 6) growPlant(local, chunk, corner, ((a >> 25) & 1u) == 1u);
  local.y += float(a >> 27) * 32.0;
  local += chunk;
  // Quads of different sizes meet in T-junctions: widen each slightly, or the sky shows through the gaps.
  int axis = face >> 1;
  vec3 u = axis == 0 ? vec3(0, 1, 0) : axis == 1 ? vec3(0, 0, 1) : vec3(1, 0, 0);
  vec3 v = axis == 0 ? vec3(0, 0, 1) : axis == 1 ? vec3(1, 0, 0) : vec3(0, 1, 0);
  vec3 outward = u * (corner == 1 || corner == 2 ? 1.0 : -1.0) + v * (corner >= 2 ? 1.0 : -1.0);
  float w = face < 6 ? (projectionMatrix * (modelViewMatrix * vec4(local, 1.0))).w : 0.0;
  local += outward * 1e-4 * max(w, 0.0);
  place = (modelMatrix * vec4(local, 1.0)).xyz;
  relative = place - cameraPosition;
  gl_Position = projectionMatrix * (modelViewMatrix * vec4(local, 1.0));
}
`

const FRAGMENT_HEAD = /* glsl */ `
precision highp float;
precision highp int;
precision mediump sampler2DArray;
uniform sampler2DArray tiles;
uniform vec3 skyLight, ambient;
uniform float time, lamp;
in vec3 relative, place;
in vec2 uv;
in vec4 shade;
flat in int face;
flat in float layer;
out vec4 colour_;
${SKY_GLSL}
${DIRECT_GLSL}
${FOG_GLSL}
${NOISE_GLSL}

float curve(float level) { return level / (3.0 - 2.0 * level); }

// By day the ground and walls throw light below roofs, up to 15 blocks from the open sky, on their undersides, too.
float curveOfSky(float level) { return max(curve(level), 0.7 * daylight * sqrt(level)); }

vec3 lit() {
  // plants are lit like the ground they stand on
  vec3 n = face == 0 ? vec3(1, 0, 0) : face == 1 ? vec3(-1, 0, 0) : face == 2 || face >= 6 ? vec3(0, 1, 0)
         : face == 3 ? vec3(0, -1, 0) : face == 4 ? vec3(0, 0, 1) : vec3(0, 0, -1);
  float side = face == 2 || face >= 6 ? 1.0 : face == 3 ? 0.58 : face < 2 ? 0.76 : 0.87;
  float direct = directLight(n) * smoothstep(0.8, 1.0, shade.y);
  float occlusion = mix(0.5, 1.0, shade.x * (0.6 + 0.4 * shade.x));
  float sky = curve(shade.y);
  vec3 fromSky = skyLight * curveOfSky(shade.y) * (0.95 * mix(1.0, side, 0.25 + 0.75 * shade.y) + direct);
  float inHand = lamp * curve(max(0.0, 1.0 - length(relative) / 15.0));
  vec3 fromGlow = vec3(1.4, 1.06, 0.7) * max(curve(shade.z), inHand) * mix(1.0, side, 0.6) * (1.0 - 0.75 * daylight * sky);
  return (fromSky + fromGlow + ambient) * occlusion;
}
`

const SOLID = /* glsl */ `
${FRAGMENT_HEAD}

// A net of bright lines, in the pixel size of the textures.
float caustics() {
  vec2 p = floor(place.xz * 16.0) / 16.0 + (face == 2 ? vec2(0) : vec2(place.y));
  float a = smoothNoise(p * 1.1 + time * vec2(0.4, 0.25)), b = smoothNoise(p * 1.4 + time * vec2(-0.35, 0.3) + 17.0);
  float line = max(0.0, 1.0 - 2.6 * abs(a - b));
  return line * line * line;
}

// Water takes red first. Light falls deeper than in the air, where it is for the eye to get used to caves.
vec3 litUnderWater() {
  float depth = 1.0 - shade.y;
  vec3 tint = mix(vec3(1.0), vec3(0.35, 0.75, 0.9), depth);
  float sun = max(sunward.y, 0.0) * daylight * shade.y * (face == 3 ? 0.0 : face == 2 ? 1.0 : 0.5);
  float seen = 1.0 - smoothstep(24.0, 48.0, length(relative));
  vec3 fromSky = skyLight * tint * (0.05 + 0.4 * shade.y + 0.8 * sun * seen * caustics());
  return lit() + fromSky * (0.6 + 0.4 * shade.x);
}

void main() {
  vec4 texel = texture(tiles, vec3(uv, layer));
#ifdef CUTOUT
  if (texel.a < 0.5) discard;
#endif
  // broad patches of lighter and darker ground
  float patch_ = smoothNoise(place.xz * 0.045) * 0.6 + smoothNoise(place.xz * 0.19 + place.y * 0.1) * 0.4;
  vec3 c = texel.rgb * (0.93 + 0.14 * patch_) * (shade.w > 0.5 ? litUnderWater() : lit());
  colour_ = vec4(fogged(min(c, 1.0), relative), 1.0);
}
`

const WATER = /* glsl */ `
${FRAGMENT_HEAD}
${WATER_GLSL}
uniform float edge;
void main() {
  vec3 d = normalize(relative);
  vec3 light = lit();
  vec4 texel = texture(tiles, vec3(uv, layer));
  if (shade.w < 0.5) { // ice and glass
    colour_ = vec4(fogged(texel.rgb * light, relative), texel.a);
    return;
  }
  // ripples in the pixel size of the textures
  vec2 p = floor(place.xz * 16.0) / 16.0 + (face == 2 || face == 3 ? vec2(0) : vec2(place.y));
  float far = length(relative.xz);
  float away = smoothstep(0.4, 0.9, far / edge);
  float calm = (1.0 - away) / (1.0 + 0.02 * far);
  vec2 slope = vec2(
    cos(p.x * 1.3 + p.y * 0.7 + time * 1.1) + 0.7 * cos(p.x * 2.9 - p.y * 2.1 - time * 1.7) + 1.3 * (smoothNoise(p * 1.7 + time * 0.4) - 0.5),
    cos(p.y * 1.1 - p.x * 0.6 + time * 0.9) + 0.7 * cos(p.y * 3.1 + p.x * 1.9 + time * 1.5) + 1.3 * (smoothNoise(p * 1.7 - time * 0.4 + 40.0) - 0.5));
  vec3 n = normalize(vec3(slope.x * 0.055 * calm, 1.0, slope.y * 0.055 * calm));
  if (face != 2) n = vec3(0, 1, 0);
  if (submerged > 0.5) { // from below: the sky in a round window (Snell's), and the water's own colour around it
    float window = smoothstep(0.6, 0.72, abs(dot(d, n)));
    vec3 c = mix(0.9 * murkAlong(vec3(d.x, 0.2 * d.y, d.z)), skyColour(d) * light, window);
    colour_ = vec4(fogged(c, relative), mix(0.95, 0.5, window));
    return;
  }
  vec4 water = waterColour(d, n, texel.rgb, light, curve(shade.y), away);
  float crest = smoothstep(1.5, 2.3, slope.x + slope.y) * 0.07 * calm;
  colour_ = vec4(fogged(min(water.rgb + crest * skyLight, 1.0), relative), mix(water.a, 1.0, smoothstep(fog.x, fog.y, far)));
}
`

const OPAQUE_PROGRAM = new Program(VERTEX, SOLID)
const CUTOUT_PROGRAM = new Program(VERTEX, `#define CUTOUT\n${SOLID}`)
const WATER_PROGRAM = new Program(VERTEX, WATER)

/** Returns the tiles with their mipmaps. */
export function tileTexture(): Texture {
  const levels = drawAllTiles().map(({ edge, pixels }) => ({ data: pixels, width: edge, height: edge }))
  const options = { format: 'rgba8', enlarge: 'nearest', mipmaps: 'given', repeat: true } as const
  return new Texture(levels, { ...options, layers: LAYERS })
}

export interface TerrainMaterials {
  opaque: Material
  cutout: Material
  water: Material
}

/** What is drawn of a buffer of quads. */
export interface TerrainUniforms {
  tiles: { value: Texture }
  /** The chunk of each page, x and z modulo 2^16. */
  chunks: { value: Texture | null }
  /** The chunk from which meshes are placed, modulo 2^16. */
  origin: { value: readonly number[] }
}

export function makeTerrainMaterials(of: TerrainUniforms): TerrainMaterials {
  const uniforms = { ...air, ...of }
  return {
    opaque: { program: OPAQUE_PROGRAM, uniforms },
    cutout: { program: CUTOUT_PROGRAM, uniforms, side: 'both' },
    water: { program: WATER_PROGRAM, uniforms, side: 'both', transparent: true },
  }
}
