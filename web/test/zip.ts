import { crc32, deflateRawSync } from 'node:zlib'

/** Returns a zip of files. */
export function zipOf(files: Record<string, Uint8Array>): Uint8Array<ArrayBuffer> {
  const locals: Buffer[] = []
  const entries: Buffer[] = []
  let offset = 0
  for (const [name, data] of Object.entries(files)) {
    const packed = deflateRawSync(data)
    // what a local header and an entry have in common: version, flags, method, time, date, sum, sizes, length of the name
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(8, 4)
    common.writeUInt32LE(crc32(data), 10)
    common.writeUInt32LE(packed.length, 14)
    common.writeUInt32LE(data.length, 18)
    common.writeUInt16LE(name.length, 22)
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, Buffer.from(name), packed])
    const rest = Buffer.alloc(14)
    rest.writeUInt32LE(offset, 10)
    entries.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), common, rest, Buffer.from(name)]))
    locals.push(local)
    offset += local.length
  }
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06')
  end.writeUInt16LE(entries.length, 8)
  end.writeUInt16LE(entries.length, 10)
  end.writeUInt32LE(
    entries.reduce((sum, entry) => sum + entry.length, 0),
    12,
  )
  end.writeUInt32LE(offset, 16)
  return new Uint8Array(Buffer.concat([...locals, ...entries, end]))
}
