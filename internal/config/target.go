package config

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"
)

// Target is where finished backups are copied to, off the machine: a command, or a bucket of an object store. The zero
// value is none.
type Target struct {
	Command string // absolute path of a program; empty: it is a bucket

	Bucket   string
	Prefix   string // of the names of objects, without slashes at its ends; may be empty
	Endpoint string // host, and port if it has one
	Plain    bool   // HTTP instead of HTTPS
	Region   string // empty: the store is asked
}

// bucketScheme begins the URL of a bucket.
const bucketScheme = "s3://"

// IsBucket reports whether a text is the URL of a bucket, and not the name of a file.
func IsBucket(text string) bool { return strings.HasPrefix(text, bucketScheme) }

// ParseTarget parses a target: the absolute path of a program, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME.
func ParseTarget(text string) (Target, error) {
	switch {
	case text == "":
		return Target{}, nil
	case filepath.IsAbs(text):
		return Target{Command: text}, nil
	case strings.Contains(text, "://") && !IsBucket(text): // it may have a secret, and is not shown
		return Target{}, errors.New("another URL than that of a bucket: write that like s3://bucket/prefix?endpoint=https://s3.example.org")
	case !IsBucket(text):
		return Target{}, fmt.Errorf("%q is neither the absolute path of a program nor like s3://bucket/prefix?endpoint=https://s3.example.org", text)
	}
	u, err := url.Parse(text)
	if err != nil {
		return Target{}, errors.New("the URL of the bucket cannot be read; write it like s3://bucket/prefix?endpoint=https://s3.example.org")
	}
	if u.User != nil {
		return Target{}, errors.New("the URL of the bucket has credentials: put them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, " +
			"or into the file that AWS_SHARED_CREDENTIALS_FILE names")
	}
	t := Target{Bucket: u.Host, Prefix: strings.Trim(path.Clean("/"+u.Path), "/"), Endpoint: "s3.amazonaws.com"}
	if t.Bucket == "" {
		return Target{}, errors.New("the URL names no bucket: write it like s3://bucket/prefix?endpoint=https://s3.example.org")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Target{}, errors.New("the URL of the bucket cannot be read after the question mark")
	}
	for key, values := range query {
		switch key {
		case "endpoint":
			e, err := url.Parse(values[0])
			if err != nil || e.Host == "" || e.Scheme != "http" && e.Scheme != "https" || e.User != nil || strings.Trim(e.Path, "/")+e.RawQuery != "" {
				return Target{}, fmt.Errorf("endpoint of bucket %s: write it like https://s3.example.org or http://192.0.2.1:9000", t.Bucket)
			}
			t.Endpoint, t.Plain = e.Host, e.Scheme == "http"
		case "region":
			t.Region = values[0]
		default:
			return Target{}, fmt.Errorf("the URL of bucket %s has the unknown parameter %q: there are endpoint and region", t.Bucket, key)
		}
	}
	return t, nil
}

// String returns the target as people know it.
func (t Target) String() string {
	switch {
	case t.Command != "":
		return t.Command
	case t.Bucket == "":
		return ""
	}
	return bucketScheme + path.Join(t.Bucket, t.Prefix) + " at " + t.Endpoint
}

func checkTarget(text string) error {
	_, err := ParseTarget(text)
	return err
}
