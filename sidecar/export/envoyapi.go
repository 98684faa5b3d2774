package export

// The parts of Envoy's API that are written: from envoy.config.route.v3, the rate limit filter, and
// envoy.config.cluster.v3.

// An action creates one entry of a descriptor. One field is set.
type action struct {
	Generic *genericKey  `yaml:"generic_key,omitempty"`
	Header  *headerValue `yaml:"request_headers,omitempty"`
	Query   *queryValue  `yaml:"query_parameters,omitempty"`
	Remote  *struct{}    `yaml:"remote_address,omitempty"`
}

type genericKey struct {
	Key   string `yaml:"descriptor_key"`
	Value string `yaml:"descriptor_value"`
}

type headerValue struct {
	Header string `yaml:"header_name"`
	Key    string `yaml:"descriptor_key"`
	Skip   bool   `yaml:"skip_if_absent"`
}

type queryValue struct {
	Parameter string `yaml:"query_parameter_name"`
	Key       string `yaml:"descriptor_key"`
	Skip      bool   `yaml:"skip_if_absent"`
}

type rateLimit struct {
	Actions []action `yaml:"actions"`
}

// A routeMatch has a Prefix or a Segments, the prefix of whole segments.
type routeMatch struct {
	Prefix   string        `yaml:"prefix,omitempty"`
	Segments string        `yaml:"path_separated_prefix,omitempty"`
	Headers  []headerMatch `yaml:"headers,omitempty"`
}

type headerMatch struct {
	Name   string      `yaml:"name"`
	String stringMatch `yaml:"string_match"`
}

type stringMatch struct {
	Regex regex `yaml:"safe_regex"`
}

type regex struct {
	Regex string `yaml:"regex"`
}

type rewrite struct {
	Pattern      regex  `yaml:"pattern"`
	Substitution string `yaml:"substitution"`
}

type routeAction struct {
	Cluster string      `yaml:"cluster"`
	Host    string      `yaml:"host_rewrite_literal"`
	Rewrite *rewrite    `yaml:"regex_rewrite,omitempty"`
	Limits  []rateLimit `yaml:"rate_limits,omitempty"`
}

type route struct {
	Name  string      `yaml:"name"`
	Match routeMatch  `yaml:"match"`
	Route routeAction `yaml:"route"`
}

type virtualHost struct {
	Name    string   `yaml:"name"`
	Domains []string `yaml:"domains"`
	Routes  []route  `yaml:"routes"`
}

type routeConfig struct {
	Name         string        `yaml:"name"`
	VirtualHosts []virtualHost `yaml:"virtual_hosts"`
}

type filter struct {
	Name   string `yaml:"name"`
	Config any    `yaml:"typed_config"`
}

type rateLimitFilter struct {
	Type    string `yaml:"@type"`
	Domain  string `yaml:"domain"`
	Timeout string `yaml:"timeout"`
	Deny    bool   `yaml:"failure_mode_deny"`
	Service struct {
		Version string `yaml:"transport_api_version"`
		GRPC    struct {
			Envoy struct {
				Cluster string `yaml:"cluster_name"`
			} `yaml:"envoy_grpc"`
		} `yaml:"grpc_service"`
	} `yaml:"rate_limit_service"`
}

type connectionManager struct {
	Normalize bool        `yaml:"normalize_path"`
	StripPort bool        `yaml:"strip_any_host_port"`
	Filters   []filter    `yaml:"http_filters"`
	Routes    routeConfig `yaml:"route_config"`
}

// bare is a message with only a type.
type bare struct {
	Type string `yaml:"@type"`
}

type address struct {
	Socket struct {
		Address string `yaml:"address"`
		Port    int    `yaml:"port_value"`
	} `yaml:"socket_address"`
}

type endpoint struct {
	Endpoint struct {
		Address address `yaml:"address"`
	} `yaml:"endpoint"`
}

type locality struct {
	Endpoints []endpoint `yaml:"lb_endpoints"`
}

type assignment struct {
	Cluster   string     `yaml:"cluster_name"`
	Endpoints []locality `yaml:"endpoints"`
}

type transport struct {
	Name   string `yaml:"name"`
	Config any    `yaml:"typed_config"`
}

type serverName struct {
	Type string `yaml:"@type"`
	SNI  string `yaml:"sni,omitempty"`
}

type cluster struct {
	Name     string         `yaml:"name"`
	Type     string         `yaml:"type"`
	Connect  string         `yaml:"connect_timeout"`
	Protocol map[string]any `yaml:"typed_extension_protocol_options,omitempty"`
	TLS      *transport     `yaml:"transport_socket,omitempty"`
	Load     assignment     `yaml:"load_assignment"`
}
