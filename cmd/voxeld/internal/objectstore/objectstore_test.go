package objectstore

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/internal/config"
	kit "github.com/voxelpopuli/voxeld/test/testkit/objectstore"
)

// start returns a bucket in a new object store, with credentials in the environment.
func start(t *testing.T, prefix string) (*Bucket, *kit.Server) {
	t.Helper()
	for _, variable := range append(kit.Env(), "AWS_SHARED_CREDENTIALS_FILE=/none", "AWS_CONFIG_FILE=/none") {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	s := kit.Start(t)
	target, err := config.ParseTarget(s.URL(prefix))
	if err != nil {
		t.Fatal(err)
	}
	b, err := open(target, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return b, s
}

// file returns a file of random bytes.
func file(t *testing.T, size int) (name string, content []byte) {
	t.Helper()
	content = make([]byte, size)
	rand.NewChaCha8([32]byte{byte(size)}).Read(content) //nolint:errcheck // it never fails
	name = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return name, content
}

// What is stored is read back, listed by its name without the prefix, and deleted. What is there already is not sent
// again.
func TestBucket(t *testing.T) {
	b, s := start(t, "some/where")
	const size = 20 << 20
	name, content := file(t, size)
	ctx := t.Context()
	if sent, err := b.Store(ctx, name, "node/a"); sent != size || err != nil {
		t.Fatalf("sent %d: %v", sent, err)
	}
	before := s.Sent()
	if sent, err := b.Store(ctx, name, "node/a"); sent != 0 || err != nil || s.Sent()-before > 10_000 {
		t.Errorf("sent %d again, in %d bytes: %v", sent, s.Sent()-before, err)
	}
	var back bytes.Buffer
	if err := b.Read(ctx, "node/a", &back); !bytes.Equal(back.Bytes(), content) || err != nil {
		t.Errorf("%d bytes were read back: %v", back.Len(), err)
	}
	s.Break(kit.Corrupt)
	damaged, _ := file(t, size-2)
	if _, err := b.Store(ctx, damaged, "node/a"); err == nil {
		t.Error("what was changed on the way passes for what was sent")
	}
	s.Break(kit.None)
	other, _ := file(t, size-1)
	if sent, err := b.Store(ctx, other, "node/a"); sent != size-1 || err != nil {
		t.Errorf("another file: sent %d: %v", sent, err)
	}
	small, _ := file(t, 1)
	for _, object := range []string{"node/b", "noder", "c"} {
		if _, err := b.Store(ctx, small, object); err != nil {
			t.Error(err)
		}
	}
	for dir, want := range map[string][]string{"": {"c", "node/a", "node/b", "noder"}, "node": {"node/a", "node/b"}, "none": nil} {
		got, err := b.List(ctx, dir)
		if slices.Sort(got); !slices.Equal(got, want) || err != nil {
			t.Errorf("below %q there are %q: %v", dir, got, err)
		}
	}
	if err := b.Delete(ctx, "node/a"); err != nil || b.Has(ctx, "node/a", size-1) == nil || b.Has(ctx, "node/b", 1) != nil {
		t.Error(err)
	}
}

// A store that refuses, hangs or cuts is an error in a time that has a bound, and what it says has no secret.
func TestBrokenStore(t *testing.T) {
	b, s := start(t, "")
	name, _ := file(t, 1<<20)
	for _, fault := range []kit.Fault{kit.Refuse, kit.Hang, kit.Cut} {
		s.Break(fault)
		begun := time.Now()
		_, err := b.Store(t.Context(), name, "a")
		if err == nil || strings.Contains(err.Error(), kit.SecretKey) || !strings.Contains(err.Error(), "bucket "+kit.Bucket+" at "+s.Address) {
			t.Errorf("fault %d: %v", fault, err)
		}
		t.Logf("fault %d: after %v: %v", fault, time.Since(begun).Round(time.Millisecond), err)
	}
	s.Break(kit.None)
	if _, err := b.Store(t.Context(), name, "a"); err != nil {
		t.Errorf("when it works again: %v", err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "another")
	wrong, err := open(b.Target, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := wrong.Has(t.Context(), "a", 1<<20); s.Checks && (err == nil || strings.Contains(err.Error(), "another")) {
		t.Errorf("with a wrong secret: %v", err)
	}
	missing := b.Target
	missing.Bucket = "no-such-bucket"
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	none, err := open(missing, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.Store(t.Context(), name, "a"); err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("without credentials: %v", err)
	}
}
