package docs

import (
	"strings"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	"go.yaml.in/yaml/v3"
)

// An envoyFile is the Envoy configuration of a page: the filter and the descriptors of a route.
type envoyFile struct {
	Filters []struct {
		Name   string
		Config struct {
			Type    string `yaml:"@type"`
			Domain  string
			Timeout string
			Deny    bool `yaml:"failure_mode_deny"`
			Service struct {
				Version string `yaml:"transport_api_version"`
				GRPC    struct {
					Envoy struct {
						Cluster string `yaml:"cluster_name"`
					} `yaml:"envoy_grpc"`
				} `yaml:"grpc_service"`
			} `yaml:"rate_limit_service"`
		} `yaml:"typed_config"`
	} `yaml:"http_filters"`
	Limits []struct {
		Actions []struct {
			Header struct {
				Name string `yaml:"header_name"`
				Key  string `yaml:"descriptor_key"`
			} `yaml:"request_headers"`
		}
	} `yaml:"rate_limits"`
}

func filterOf(text string) (*envoyFile, error) {
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	f := new(envoyFile)
	return f, d.Decode(f)
}

// descriptors returns Envoy's descriptors for a request with these headers. A descriptor with a missing entry is omitted.
func (f *envoyFile) descriptors(headers map[string]string) (all []*common.RateLimitDescriptor) {
next:
	for _, l := range f.Limits {
		d := new(common.RateLimitDescriptor)
		for _, a := range l.Actions {
			value, has := headers[a.Header.Name]
			if !has {
				continue next
			}
			d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: a.Header.Key, Value: value})
		}
		all = append(all, d)
	}
	return all
}
