// Package interest decides which avatars a client is sent, how exactly, and how often.
//
// An Index holds all avatars in the chunks that a gateway mirrors: a bucket for each chunk, divided into cells of 8×8
// blocks. Clients extrapolate avatars. An LOD tier bounds the error of that before an update is sent, and each cell's
// motion is encoded once per tick and tier, for all recipients. Sessions in one cell with one view distance share an
// observer: the list of buckets in view with the tier of each cell, chosen by distance, crowd and budget, and so the
// motion of a frame. What is left per session is to copy it.
//
// The package is pure: no lock, goroutine, clock or socket. One goroutine at a time uses an Index, with the Occupants
// of the chunks that it was passed.
package interest
