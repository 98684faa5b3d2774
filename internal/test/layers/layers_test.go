package layers

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Files depend on the system, so each system is checked.
func TestArrowsPointDown(t *testing.T) {
	watch(t)
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, v := range Violations(list(t, goos)) {
			t.Errorf("%s: %s", goos, v)
		}
	}
}

// Indirect imports count as well: the core and its tests depend only on the standard library and the core.
func TestCoreIsBuiltFromTheStandardLibrary(t *testing.T) {
	watch(t)
	packages := corePackages(t)
	if len(packages) == 0 {
		t.Fatal("go list shows no package of the core")
	}
	for _, p := range list(t, "linux", packages...) {
		own, ok := inModule(p.ImportPath)
		if !p.Standard && !(ok && core(own)) {
			t.Errorf("the core or a test of it is built from %s; go list -deps -test says by which way", p.ImportPath)
		}
	}
}

func TestForbidden(t *testing.T) {
	const redis = "github.com/redis/rueidis"
	own := func(p string) string { return module + "/" + p }
	tests := []struct {
		name, from, to string
		ok             bool
	}{
		{"down", "breaker", own("outcome"), true},
		{"down to a helper", "limit", own("internal/counter"), true},
		{"down from the root", ".", own("limit"), true},
		{"down from above", "fleet/redisstore", own("fleet"), true},
		{"down from an adapter to the root", "awsx", module, true},
		{"from far above", "cmd/weir", own("fleet/redisstore"), true},
		{"a suite and its subject", "fleet/storetest", own("fleet"), true},
		{"the subject's tests and their suite", "fleet", own("fleet/storetest"), true},
		{"foreign, above the root", "fleet/redisstore", redis, true},
		{"grpc, above the root", "grpcx/grpcclass", "google.golang.org/grpc/codes", true},

		{"up", "outcome", own("breaker"), false},
		{"up to the root", "limit", module, false},
		{"up from the root", ".", own("sidecar/config"), false},
		{"up out of a helper", "internal/counter", own("retry"), false},
		{"side by side", "cascade", own("limit/line"), false},
		{"side by side under one roof", "fleet/redisstore", own("fleet/dynamostore"), false},
		{"a child above its parent", "outcome/classify", own("grpcx/grpcclass"), false},
		{"foreign in the core", "limit", redis, false},
		{"foreign in the root", ".", redis, false},
		{"foreign in a core suite", "fleet/storetest", redis, false},
		{"a stranger", "proxy", own("elsewhere"), false},
		{"a namesake of the module", "limit", module + "er/limit", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if why := forbidden(tt.from, tt.to, false); (why == "") != tt.ok {
				t.Errorf("%s imports %s: allowed is %v, want %v: %s", tt.from, tt.to, why == "", tt.ok, why)
			}
		})
	}
}

func TestViolationsNamePackageAndImport(t *testing.T) {
	const redis = "github.com/redis/rueidis"
	got := Violations([]Package{
		{ImportPath: "time", Standard: true},
		{ImportPath: redis, Imports: []string{"time"}},
		{ImportPath: module + "/limit", Imports: []string{"time", module}},
		{ImportPath: module + "/retry", TestImports: []string{redis}},
		{ImportPath: module + "/limit/bucket", XTestImports: []string{"time", redis}},
		{ImportPath: module + "/newcomer"},
		{ImportPath: module, Imports: []string{module + "/fleet"}, XTestImports: []string{module + "/fleet"}},
	})
	want := []string{
		"limit must not import " + module + ": it stands above",
		"retry's tests must not import " + redis + ": the core",
		"limit/bucket's external tests must not import " + redis + ": the core",
		"newcomer stands in no layer",
		". must not import " + module + "/fleet: it knows a fleet as",
	}
	if len(got) != len(want) {
		t.Fatalf("got %d violations, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got  %s\nwant %s…", got[i], want[i])
		}
	}
}

// watch reads the module's directories. The go command caches the result of a test until a file that the test itself read has
// changed. Files that go list reads do not count.
func watch(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("..", "..", ".."), func(path string, d os.DirEntry, err error) error {
		if d != nil && (d.Name() == ".git" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// list returns all packages that the named packages, or all, and their tests depend on.
func list(t *testing.T, goos string, packages ...string) []Package {
	t.Helper()
	if len(packages) == 0 {
		packages = []string{module + "/..."}
	}
	args := append([]string{"list", "-deps", "-test", "-json=ImportPath,Standard,Imports,TestImports,XTestImports"}, packages...)
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return decode(t, out)
}

func decode(t *testing.T, out []byte) (packages []Package) {
	t.Helper()
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p Package
		if err := d.Decode(&p); err != nil {
			t.Fatalf("what go list printed: %v", err)
		}
		packages = append(packages, p)
	}
	return packages
}

func corePackages(t *testing.T) (found []string) {
	t.Helper()
	for _, p := range list(t, "linux") {
		if own, ok := inModule(p.ImportPath); ok && core(own) && p.ImportPath == plain(p.ImportPath) {
			found = append(found, p.ImportPath)
		}
	}
	return found
}

// Only internal/doc parses files that people write, so that all mistakes are reported with line and field. The demo only writes
// YAML.
func TestOneReaderOfYAML(t *testing.T) {
	watch(t)
	for _, p := range list(t, "linux") {
		for _, i := range p.Imports {
			if from, ok := inModule(p.ImportPath); ok && p.ImportPath == plain(p.ImportPath) && strings.Contains(i, "yaml") && from != "internal/doc" && from != "cmd/weir-demo" {
				t.Errorf("%s imports %s: read the file by internal/doc", from, i)
			}
		}
	}
}
