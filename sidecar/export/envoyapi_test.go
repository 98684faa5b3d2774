package export

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var fieldName = regexp.MustCompile(`protobuf:"[^"]*name=([a-z0-9_]+)`)

// messages returns the field names of Envoy's messages in a package, including the fields of a oneof.
func messages(t *testing.T, dir string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.pb.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no messages: %v", dir, err)
	}
	all := make(map[string][]string)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if body, ok := s.Type.(*ast.StructType); ok {
				for _, f := range body.Fields.List {
					if f.Tag != nil {
						if m := fieldName.FindStringSubmatch(f.Tag.Value); m != nil {
							all[s.Name.Name] = append(all[s.Name.Name], m[1])
						}
					}
				}
			}
			return false
		})
	}
	return all
}

// All written fields exist in the API version of go.mod, by its source, because Envoy refuses unknown fields.
func TestEnvoyKnowsEveryField(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/envoyproxy/go-control-plane/envoy").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := strings.TrimSpace(string(dir))
	for folder, types := range map[string]map[string]any{
		"config/route/v3": {
			"RateLimit": rateLimit{}, "RateLimit_Action": action{}, "RateLimit_Action_GenericKey": genericKey{},
			"RateLimit_Action_RequestHeaders": headerValue{}, "RateLimit_Action_QueryParameters": queryValue{},
			"RouteMatch": routeMatch{}, "HeaderMatcher": headerMatch{}, "RouteAction": routeAction{}, "Route": route{},
			"VirtualHost": virtualHost{}, "RouteConfiguration": routeConfig{},
		},
		"type/matcher/v3":                      {"StringMatcher": stringMatch{}, "RegexMatcher": regex{}, "RegexMatchAndSubstitute": rewrite{}},
		"extensions/filters/http/ratelimit/v3": {"RateLimit": rateLimitFilter{}},
		"config/ratelimit/v3":                  {"RateLimitServiceConfig": rateLimitFilter{}.Service},
		"config/core/v3":                       {"GrpcService": rateLimitFilter{}.Service.GRPC, "GrpcService_EnvoyGrpc": rateLimitFilter{}.Service.GRPC.Envoy, "Address": address{}, "SocketAddress": address{}.Socket, "TransportSocket": transport{}},
		"config/cluster/v3":                    {"Cluster": cluster{}},
		"config/endpoint/v3":                   {"ClusterLoadAssignment": assignment{}, "LocalityLbEndpoints": locality{}, "LbEndpoint": endpoint{}, "Endpoint": endpoint{}.Endpoint},
		"extensions/filters/network/http_connection_manager/v3": {"HttpConnectionManager": connectionManager{}, "HttpFilter": filter{}},
		"extensions/transport_sockets/tls/v3":                   {"UpstreamTlsContext": serverName{}},
	} {
		known := messages(t, filepath.Join(root, filepath.FromSlash(folder)))
		for name, value := range types {
			fields := known[name]
			for other, more := range known {
				if strings.HasPrefix(other, name+"_") && len(more) == 1 {
					fields = append(fields, more...)
				}
			}
			if len(fields) == 0 {
				t.Errorf("%s has no %s", folder, name)
			}
			has := func(want string) bool {
				for _, f := range fields {
					if f == want {
						return true
					}
				}
				return want == "@type"
			}
			for i := range reflect.TypeOf(value).NumField() {
				if want, _, _ := strings.Cut(reflect.TypeOf(value).Field(i).Tag.Get("yaml"), ","); !has(want) {
					t.Errorf("%s of %s has no field %q", name, folder, want)
				}
			}
		}
	}
}
