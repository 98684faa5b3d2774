// Package layers checks the direction of imports between weir's packages. A program that imports the core must not download an
// AWS SDK, a Redis client, gRPC, OpenTelemetry or Prometheus. It would as soon as one package of the core, or one of its tests,
// imported a package that needs them.
package layers

import (
	"cmp"
	"fmt"
	"path"
	"strings"
)

const module = "github.com/seed1158cd35/weir"

// order lists the layers from the bottom up, with package paths in the module. A path includes all packages below it that are
// not listed. A package may import packages of lower layers. In its own layer it may import only packages directly above or
// below it in the tree: fleet/storetest imports fleet, and the tests of fleet import fleet/storetest.
var order = [...][]string{
	{"outcome", "clock", "internal/test/raced"},
	{"internal/test/campaign", "internal/test/watchdog", "internal/test/layers", "internal/test/memnet", "internal/test/playedhosts"},
	{"internal", "internal/test/delayproxy", "internal/test/servers"},
	{"limit/bucket", "limit/pause"},
	{"outcome/classify"},
	{"limit/adaptive"},
	{"breaker"},
	{"retry"},
	{"cascade", "limit/line"},
	{"limit"},
	{"fleet"},
	{"fleet/breakers", "fleet/pauses", "fleet/jobs"},
	{".", "internal/test/calls"}, // the root, and helpers of its tests: higher layers may import external packages
	{"internal/test/refusals"},
	{"internal/doc", "internal/refuse", "internal/unpack"}, // parse YAML; write refusals; decode bodies
	{"httpx"},
	{"fleet/filestore", "fleet/redisstore", "fleet/dynamostore", "grpcx/grpcclass", "awsx/wire"},
	{"sim", "fleet/machinestore"},
	{"internal/play"},
	{"internal/test/sigtest"},
	{"internal/test/s3test"},
	{"awsx/resign"},
	{"internal/test/drstest"},
	{"awsx", "grpcx", "internal/jwks"},
	{"cascade/cache", "cascade/answers"},
	{"cascade/similar"},
	{"delivery"},
	{"observe/metric"},
	{"internal/test/otlptest", "observe/rules"},
	{"observe"},
	{"observe/trace/look"},
	{"awsx/lambdax"},
	{"llm/frame"},
	{"llm"},
	{"llm/reading", "llm/tokens", "llm/price", "internal/test/llmsim"},
	{"llm/gateway"},
	{"delivery/deliverytest"},
	{"delivery/sqlite", "delivery/postgres", "delivery/dynamosqs", "delivery/s3bodies", "delivery/inbox"},
	{"sidecar/deliveries"},
	{"sidecar/status"},
	{"sidecar/board"},
	{"sidecar/decide", "sidecar/envoy"},
	{"sidecar/direct", "sidecar/plain", "sidecar/websocket", "sidecar/forward"},
	{"sidecar/proxy"},
	{"sidecar/awsdialect", "sidecar/grpcdialect", "sidecar/mcpdialect"},
	{"sidecar/config"},
	{"sidecar/stores", "sidecar/export", "sidecar/learn"},
	{"internal/test/practice"},
	{"sidecar/serve"},
	{"sidecar/run"},
	{"internal/test/served"},
	{"examples"},
	{"cmd", "internal/test"},
}

// tested lists packages whose external tests use a higher layer. These tests belong to the layer of the named package. Tests of
// a dialect use the proxy that serves it and the released presets. Tests of a worker use a released queue.
var tested = map[string]string{"llm/gateway": "sidecar/config", "delivery": "delivery/sqlite"}

// strangers are packages that must not import each other outside of tests. They use small interfaces instead.
var strangers = map[[2]string]string{
	{".", "fleet"}: "it knows a fleet as weir.Fleet and limit.Home",
}

// A Package is the output of go list for one package.
type Package struct {
	ImportPath string
	Standard   bool

	Imports      []string
	TestImports  []string
	XTestImports []string
}

// Violations describes every import that violates the order, with the importing package and a correction. Packages outside of
// this module and the standard library count as foreign.
func Violations(packages []Package) []string {
	standard := map[string]bool{"C": true, "unsafe": true}
	for _, p := range packages {
		standard[p.ImportPath] = standard[p.ImportPath] || p.Standard
	}
	var found []string
	for _, p := range packages {
		from, ok := inModule(p.ImportPath)
		switch {
		case !ok || p.ImportPath != plain(p.ImportPath): // go list also lists the imports of tests separately
		case layer(from) < 0:
			found = append(found, fmt.Sprintf("%s stands in no layer: give it a place in internal/test/layers", from))
		default:
			found = append(found, broken(from, from, p.Imports, standard)...)
			for _, i := range p.Imports {
				to, _ := inModule(i)
				if why := strangers[[2]string{from, to}]; why != "" {
					found = append(found, fmt.Sprintf("%s must not import %s: %s", from, i, why))
				}
			}
			found = append(found, broken(from, from+"'s tests", p.TestImports, standard)...)
			found = append(found, broken(cmp.Or(tested[from], from), from+"'s external tests", p.XTestImports, standard)...)
		}
	}
	return found
}

func broken(from, who string, imports []string, standard map[string]bool) (found []string) {
	for _, i := range imports {
		if why := forbidden(from, i, standard[i]); why != "" {
			found = append(found, fmt.Sprintf("%s must not import %s: %s", who, i, why))
		}
	}
	return found
}

// forbidden describes why an import is forbidden and how to correct it. It returns "" if the import is allowed.
func forbidden(from, imported string, standard bool) string {
	to, own := inModule(imported)
	switch {
	case standard:
		return ""
	case !own && core(from):
		return "the core imports the standard library and itself only; put what needs it in a package above the root"
	case !own, from == to, kin(from, to) && layer(from) == layer(to):
		return ""
	case layer(to) < 0:
		return "it stands in no layer; give it a place in internal/test/layers"
	case layer(to) == layer(from):
		return "they stand side by side; move what they share into a layer below"
	case layer(to) > layer(from):
		return "it stands above; have it passed in, behind an interface of yours, or move what you need below"
	}
	return ""
}

// core reports whether a package is the root or in a lower layer.
func core(pkg string) bool { return layer(pkg) >= 0 && layer(pkg) <= layer(".") }

// layer returns the layer of a package, or -1. The longest matching path decides. The root matches only itself.
func layer(pkg string) int {
	for p := pkg; ; p = path.Dir(p) {
		for i, paths := range order {
			for _, listed := range paths {
				if p == listed && (p != "." || pkg == ".") {
					return i
				}
			}
		}
		if p == "." {
			return -1
		}
	}
}

// kin reports whether one package is below the other. All are below the root.
func kin(a, b string) bool {
	return a == "." || b == "." || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// inModule returns a package's path in this module.
func inModule(importPath string) (string, bool) {
	p := plain(importPath)
	if p == module {
		return ".", true
	}
	return strings.CutPrefix(p, module+"/")
}

// plain removes the additions of go list to the names of test packages: "weir/limit [weir/limit.test]", "weir/limit_test
// [weir/limit.test]", "weir/limit.test".
func plain(importPath string) string {
	p, _, _ := strings.Cut(importPath, " ")
	return strings.TrimSuffix(strings.TrimSuffix(p, ".test"), "_test")
}
