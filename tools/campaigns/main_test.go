package main

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestCampaignsAreFoundByWhateverWay(t *testing.T) {
	const imports = "package p\nimport (\n\"testing\"\n\"" + module + "/internal/test/campaign\"\n)\n"
	files := map[string]string{
		"a/direct_test.go":   imports + "func TestDirect(t *testing.T) { campaign.Of(1, 2) }\nfunc TestBrief(t *testing.T) {}",
		"b/flag_test.go":     imports + "var full = flag.Bool(\"full\", campaign.Long(), \"\")\nfunc long() bool { return *full }",
		"b/other_test.go":    "package p\nfunc TestByAFlag(t *testing.T) { if long() {} }\nfunc TestMain(m *testing.M) { long() }",
		"suite/suite.go":     imports + "type E struct{}\nfunc (e E) histories() { campaign.Histories(1, 2) }\nfunc Run(e E) { e.histories() }",
		"suite/more.go":      "package p\nfunc Brief() {}",
		"c/suite_test.go":    "package p\nimport s \"" + module + "/suite\"\nfunc TestSuite(t *testing.T) { s.Run(s.E{}) }\nfunc TestNone(t *testing.T) { s.Brief() }",
		"root_test.go":       imports + "func TestOfTheRoot(t *testing.T) { for range campaign.Of(1, 2) {} }",
		"mod/go.mod":         "module m",
		"mod/m_test.go":      imports + "func TestOfAnotherModule(t *testing.T) { campaign.Long() }",
		"a/testdata/bad.go":  "no Go",
		campaign + "/c.go":   "package campaign",
		"d/without_test.go":  "package p\nfunc TestWithout(t *testing.T) { long() }",
		"d/campaign_test.go": "package p\nfunc Test(t *testing.T) { campaign.Of() }",
	}
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	got, err := arguments(tree)
	want := []string{"-run", "^(TestByAFlag|TestDirect|TestOfTheRoot|TestSuite)$", "./.", "./a", "./b", "./c"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	got, err = arguments(tree, "c", "a", ".")
	if want = []string{"-run", "^(TestByAFlag)$", "./b"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestATreeWithoutCampaignsIsAnError(t *testing.T) {
	if got, err := arguments(fstest.MapFS{}); err == nil {
		t.Errorf("got %q, want an error", got)
	}
}
