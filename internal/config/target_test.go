package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]Target{
		"":                           {},
		"/usr/local/bin/copy-backup": {Command: "/usr/local/bin/copy-backup"},
		"s3://backups":               {Bucket: "backups", Endpoint: "s3.amazonaws.com"},
		"s3://backups/":              {Bucket: "backups", Endpoint: "s3.amazonaws.com"},
		"s3://backups/a//b/":         {Bucket: "backups", Prefix: "a/b", Endpoint: "s3.amazonaws.com"},
		"s3://backups/a?endpoint=https://s3.example.org&region=eu": {
			Bucket: "backups", Prefix: "a", Endpoint: "s3.example.org", Region: "eu",
		},
		"s3://backups?endpoint=http://[::1]:9000/": {Bucket: "backups", Endpoint: "[::1]:9000", Plain: true},
	} {
		got, err := ParseTarget(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		"backups":  "neither",
		"bin/copy": "neither",
		"https://id:hunter2@s3.example.org/backup": "s3://bucket",
		"s3:///prefix?secret=hunter2":              "names no bucket",
		"s3:///prefix":                             "names no bucket",
		"s3://id:hunter2@backups":                  "AWS_SECRET_ACCESS_KEY",
		"s3://id:hunter2@backups:x/%zz":            "cannot be read",
		"s3://backups?endpoint=s3.example.org":     "https://s3.example.org",
		"s3://backups?endpoint=http://a:hunter2@b": "https://s3.example.org",
		"s3://backups?secret=hunter2":              `unknown parameter "secret"`,
	} {
		_, err := ParseTarget(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error has the secret: %v", err)
		}
	}
}
