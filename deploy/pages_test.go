package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	pageLink   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pageAnchor = regexp.MustCompile(`<a id="([^"]+)">`)
	heading    = regexp.MustCompile(`(?m)^#+ (.+)$`)
	codeBlock  = regexp.MustCompile("(?s)```.*?```")
	notInID    = regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`)
)

// Every link from a page to a file or a heading leads there.
func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	pages := []string{"../README.md", "../research/README.md", "../research/measured.md"}
	for _, pattern := range []string{"../docs/*.md", "../docs/adr/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 50 {
		t.Fatalf("only %d pages found", len(pages))
	}
	for _, page := range pages {
		for _, found := range pageLink.FindAllStringSubmatch(codeBlock.ReplaceAllString(read(t, page), ""), -1) {
			file, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: there is no %s", page, found[1])
			} else if anchor != "" && strings.HasSuffix(target, ".md") && !slices.Contains(anchorsOf(read(t, target)), anchor) {
				t.Errorf("%s: there is no heading %s", page, found[1])
			}
		}
	}
}

// anchorsOf returns the names to which links can lead within a page: those that it sets, and those that GitHub makes of
// headings.
func anchorsOf(text string) (all []string) {
	for _, found := range pageAnchor.FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	for _, found := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		all = append(all, strings.ReplaceAll(notInID.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-"))
	}
	return all
}
