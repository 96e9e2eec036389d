// The subset of CBOR (RFC 8949) that a session uses: maps with text keys, arrays, text, bytes, numbers, booleans and null.
// Integers beyond 2⁵³ lose precision, as everywhere in JavaScript.

export type Value = number | string | boolean | null | Uint8Array<ArrayBuffer> | Value[] | { [key: string]: Value }

const MAX_DEPTH = 8

export function encodeCBOR(value: { [key: string]: number | string | boolean | undefined }): Uint8Array<ArrayBuffer> {
  const out: number[] = []
  const entries = Object.entries(value).flatMap(([key, v]) => (v === undefined ? [] : [{ key, v }]))
  head(out, 5, entries.length)
  for (const { key, v } of entries) {
    text(out, key)
    if (typeof v === 'string') text(out, v)
    else if (typeof v === 'boolean') out.push(v ? 0xf5 : 0xf4)
    else if (Number.isSafeInteger(v) && !Object.is(v, -0)) head(out, v < 0 ? 1 : 0, v < 0 ? -1 - v : v)
    else float(out, v)
  }
  return new Uint8Array(out)
}

function head(out: number[], major: number, n: number): void {
  const kind = major << 5
  if (n < 24) out.push(kind | n)
  else if (n < 0x100) out.push(kind | 24, n)
  else if (n < 0x10000) out.push(kind | 25, n >> 8, n & 0xff)
  else if (n < 0x100000000) out.push(kind | 26, ...bytesOf(n, 4))
  else out.push(kind | 27, ...bytesOf(n, 8))
}

function bytesOf(n: number, count: number): number[] {
  const bytes = new Array<number>(count)
  for (let i = count - 1; i >= 0; i--) {
    bytes[i] = n % 256
    n = Math.floor(n / 256)
  }
  return bytes
}

function text(out: number[], value: string): void {
  const bytes = new TextEncoder().encode(value)
  head(out, 3, bytes.length)
  out.push(...bytes)
}

function float(out: number[], value: number): void {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setFloat64(0, value)
  out.push(0xfb, ...bytes)
}

/** Decodes one value, which must use all of the bytes. Throws on anything else. */
export function decodeCBOR(bytes: Uint8Array<ArrayBuffer>): Value {
  const reader = new Reader(bytes)
  const value = reader.value(0)
  if (!reader.done) throw new Error('read CBOR: more than one value')
  return value
}

class Reader {
  private at = 0
  private readonly view: DataView

  constructor(private readonly bytes: Uint8Array<ArrayBuffer>) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  get done(): boolean {
    return this.at === this.bytes.length
  }

  value(depth: number): Value {
    if (depth > MAX_DEPTH) throw new Error('read CBOR: nested too deeply')
    const first = this.view.getUint8(this.at++)
    const major = first >> 5
    const info = first & 31
    if (major === 7) return this.simple(info)
    const n = this.count(info)
    switch (major) {
      case 0:
        return n
      case 1:
        return -1 - n
      case 2:
        return this.bytesOf(n).slice()
      case 3:
        return new TextDecoder('utf-8', { fatal: true }).decode(this.bytesOf(n))
      case 4: {
        const list: Value[] = []
        for (let i = 0; i < n; i++) list.push(this.value(depth + 1))
        return list
      }
      case 5: {
        const map: { [key: string]: Value } = {}
        for (let i = 0; i < n; i++) {
          const key = this.value(depth + 1)
          if (typeof key !== 'string') throw new Error('read CBOR: a key that is not text')
          map[key] = this.value(depth + 1)
        }
        return map
      }
      default:
        throw new Error(`read CBOR: type ${major} is not supported`)
    }
  }

  private bytesOf(n: number): Uint8Array<ArrayBuffer> {
    if (n > this.bytes.length - this.at) throw new Error('read CBOR: truncated')
    this.at += n
    return this.bytes.subarray(this.at - n, this.at)
  }

  private count(info: number): number {
    if (info < 24) return info
    if (info > 27) throw new Error('read CBOR: a length that is not supported')
    let n = 0
    for (const byte of this.bytesOf(1 << (info - 24))) n = n * 256 + byte
    return n
  }

  private simple(info: number): Value {
    const at = this.at
    switch (info) {
      case 20:
      case 21:
        return info === 21
      case 22:
        return null
      case 25:
        this.at += 2
        return half(this.view.getUint16(at))
      case 26:
        this.at += 4
        return this.view.getFloat32(at)
      case 27:
        this.at += 8
        return this.view.getFloat64(at)
      default:
        throw new Error('read CBOR: a simple value that is not supported')
    }
  }
}

function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 31
  const fraction = bits & 1023
  if (exponent === 0) return sign * fraction * 2 ** -24
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY
  return sign * (1024 + fraction) * 2 ** (exponent - 25)
}
