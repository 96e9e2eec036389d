// Package objectstore keeps files in a bucket of an S3-compatible object store, and reads back what it has stored.
//
// Credentials come from the environment or a file, in the variables and the format that other clients of such stores
// use; they are in no error and no name. Any goroutine may use a Bucket.
package objectstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/voxelpopuli/voxeld/internal/config"
)

// Bucket is a bucket of an object store, or what has a prefix there.
type Bucket struct {
	config.Target

	client *minio.Client
}

// attempts is how often a request is made that fails because of the connection, or as the store is busy.
const attempts = 3

// stall is how long a connection may move no byte.
const stall = time.Minute

// onePart is up to which size a file is stored by one request. All stores understand that; not all understand what
// comes in several.
const onePart = 1 << 30

// Open returns the bucket of a target. It sends nothing yet.
func Open(t config.Target) (*Bucket, error) { return open(t, stall) }

func open(t config.Target, stall time.Duration) (*Bucket, error) {
	client, err := minio.New(t.Endpoint, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			new(credentials.EnvAWS), new(credentials.FileAWSCredentials), // with neither, requests are not signed
		}),
		Secure: !t.Plain, Region: t.Region, MaxRetries: attempts, Transport: transport(stall),
	})
	if err != nil {
		return nil, fmt.Errorf("object store %s: %w", t.Endpoint, err)
	}
	return &Bucket{Target: t, client: client}, nil
}

// transport returns one whose requests end when the store is silent, or takes nothing, for so long.
func transport(stall time.Duration) *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := (&net.Dialer{Timeout: stall}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &stallingConn{c, stall}, nil
		},
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: stall, IdleConnTimeout: stall / 2,
		DisableCompression: true, // what is read back is compared
	}
}

// stallingConn is a connection that fails when a single read or write takes too long.
type stallingConn struct {
	net.Conn

	most time.Duration
}

func (c *stallingConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.most)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *stallingConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.most)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// Store stores a file under a name, unless it is there, and returns once what is read back from there is the file. It
// returns how many bytes it has sent.
func (b *Bucket) Store(ctx context.Context, file, name string) (sent int64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()                                      //nolint:errcheck // it was only read
	defer context.AfterFunc(ctx, func() { f.Close() })() //nolint:errcheck // it was only read; reading fails then
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", file, err)
	}
	if b.Has(ctx, name, size) == nil && b.check(ctx, name, sum.Sum(nil)) == nil {
		return 0, nil
	}
	if _, err = f.Seek(0, io.SeekStart); err != nil {
		return 0, fmt.Errorf("read %s: %w", file, err)
	}
	if _, err := b.client.PutObject(ctx, b.Bucket, b.key(name), f, size, minio.PutObjectOptions{
		ContentType: "application/octet-stream", NumThreads: 1, PartSize: onePart,
	}); err != nil {
		return 0, b.failed("store", name, err)
	}
	return size, b.check(ctx, name, sum.Sum(nil))
}

// Has returns an error unless there is an object of that size. It does not read it.
func (b *Bucket) Has(ctx context.Context, name string, size int64) error {
	info, err := b.client.StatObject(ctx, b.Bucket, b.key(name), minio.StatObjectOptions{})
	if err != nil {
		return b.failed("find", name, err)
	}
	if info.Size != size {
		return fmt.Errorf("%s has %d bytes there, not %d", name, info.Size, size)
	}
	return nil
}

// check returns an error unless the object has that checksum.
func (b *Bucket) check(ctx context.Context, name string, want []byte) error {
	sum := sha256.New()
	if err := b.Read(ctx, name, sum); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return fmt.Errorf("%s is not in the object store as it was sent: what was read back has another checksum", name)
	}
	return nil
}

// Open returns a reader of an object, which the caller closes.
func (b *Bucket) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	object, err := b.client.GetObject(ctx, b.Bucket, b.key(name), minio.GetObjectOptions{})
	if err != nil {
		return nil, b.failed("read", name, err)
	}
	return object, nil
}

// Read writes the bytes of an object to w.
func (b *Bucket) Read(ctx context.Context, name string, w io.Writer) error {
	object, err := b.Open(ctx, name)
	if err != nil {
		return err
	}
	defer object.Close() //nolint:errcheck // it was only read
	if _, err := io.Copy(w, object); err != nil {
		return b.failed("read", name, err)
	}
	return nil
}

// maxObjects bounds how many objects List returns.
const maxObjects = 100_000

// List returns the names of the objects below a directory; of all, if that is empty.
func (b *Bucket) List(ctx context.Context, dir string) (names []string, err error) {
	prefix := b.key(dir)
	if prefix != "" {
		prefix += "/"
	}
	for object := range b.client.ListObjectsIter(ctx, b.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if object.Err != nil {
			return nil, b.failed("list", cmp.Or(dir, "objects"), object.Err)
		}
		if names = append(names, path.Join(dir, strings.TrimPrefix(object.Key, prefix))); len(names) > maxObjects {
			return nil, fmt.Errorf("bucket %s has more than %d objects below %q: choose another prefix", b.Bucket, maxObjects, prefix)
		}
	}
	return names, nil
}

// Delete deletes an object.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	if err := b.client.RemoveObject(ctx, b.Bucket, b.key(name), minio.RemoveObjectOptions{}); err != nil {
		return b.failed("delete", name, err)
	}
	return nil
}

func (b *Bucket) key(name string) string { return path.Join(b.Prefix, name) }

// failed explains why the store did not do something.
func (b *Bucket) failed(what, name string, err error) error {
	var refused minio.ErrorResponse
	if errors.As(err, &refused) {
		err = fmt.Errorf("it answers %s: %s", refused.Code, refused.Message)
		if unsigned(b.client) {
			err = fmt.Errorf("%w (no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE)", err)
		}
	}
	return fmt.Errorf("%s %s in bucket %s at %s: %w", what, name, b.Bucket, b.Endpoint, err)
}

// unsigned reports whether a client has no credentials.
func unsigned(c *minio.Client) bool {
	value, err := c.GetCreds()
	return err == nil && value.SignerType.IsAnonymous()
}
