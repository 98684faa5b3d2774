package classify

import (
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A Row of the Table describes one place in which upstreams report information about their limits, and how to read it.
type Row struct {
	Place Place
	Name  string // a header, the path of a JSON value, or a phrase; see Place
	Means Meaning

	// Group joins the headers that report one limit: its size, remaining amount, reset and window.
	Group string

	// Unit is the unit of a number without one. If Means is Window and the header's name contains the window, Unit is the window.
	Unit time.Duration

	API    string // who sends it
	Source string // where it is documented or was observed
	Date   string // year and month in which the source was read

	Example string // an example value
	Reads   string // its meaning, which the tests check
}

// A Place is the location of a row's value.
type Place uint8

const (
	Header  Place = iota // Name is the name of a header; "*" at the beginning matches any prefix
	JSON                 // Name is a path of keys with dots, or "*." and the last key, which matches at any depth and in any spelling of its words
	Message              // Name is a phrase before the value, in any message of the body
	Words                // Name is a phrase in a message, in any case, with "…" between words that need not be adjacent
	Code                 // Name is the code itself, in one of the paths with the meaning Names
)

var placeNames = [...]string{"header", "JSON", "message", "words", "code"}

// String returns the place's name in the documentation.
func (p Place) String() string { return placeNames[p] }

// A Meaning is the meaning of a row's value.
type Meaning uint8

const (
	Wait      Meaning = iota // the time to wait, or its end
	Reset                    // when the limit's next call may be made, or when it is full again
	Full                     // when the limit is full again: it implies nothing about the next call if Remaining is known
	Limit                    // the size of the limit
	Remaining                // its remaining amount
	Window                   // the period of the limit
	Advice                   // whether to retry: true or false
	Throttles                // the call was refused because of the rate, with any status
	Quota                    // an amount for a day or longer is used up
	Names                    // a code
	Known                    // a code, if it determines the class
)

var meaningNames = [...]string{"wait", "reset", "full", "limit", "remaining", "window", "advice", "throttled", "quota", "code", "known code"}

// String returns the meaning's name in the documentation.
func (m Meaning) String() string { return meaningNames[m] }

const (
	ms   = time.Millisecond
	sec  = time.Second
	mins = time.Minute
	hour = time.Hour
	day  = 24 * time.Hour
)

// Table lists every hint that HTTP reads. Waits are in order of precedence: the most precise first. docs/reference/hints.md is
// generated from it, and each row has a test, generated from its example.
var Table = [...]Row{
	// Waits in headers.
	{Header, "Retry-After-Ms", Wait, "", ms, "OpenAI, Anthropic, Azure OpenAI", "openai 6.49 and anthropic 1.11 (npm)", "2026-11", "4000.5", "4.0005s"},
	{Header, "X-Ms-Retry-After-Ms", Wait, "", ms, "Azure Cosmos DB", "learn.microsoft.com/rest/api/cosmos-db/common-cosmosdb-rest-response-headers", "2026-11", "4000", "4s"},
	{Header, "X-Amz-Retry-After", Wait, "", ms, "AWS", "aws-sdk-go-v2 1.47.6 `aws/retry`", "2026-11", "4000", "4s"},
	{Header, "X-Rate-Limit-Retry-After-Milliseconds", Wait, "", ms, "Bucket4j", "documentation of bucket4j-spring-boot-starter", "2026-11", "4000", "4s"},
	{Header, "Retry-After", Wait, "", sec, "RFC 9110; most APIs", "RFC 9110 10.2.3", "2026-11", "4", "4s"},
	{Header, "Retry-After", Wait, "", sec, "Zoom (an instant of ISO 8601)", "developers.zoom.us/docs/api/rate-limits", "2026-11", "2026-11-20T12:00:04Z", "4s"},
	{Header, "Retry-After", Wait, "", sec, "servers that send the epoch", "mvanhorn/cli-printing-press#542", "2026-11", "1795176004", "4s"},
	{Header, sentryLimits, Wait, "", sec, "Sentry: the wait before the first colon of each limit", "develop.sentry.dev/sdk/expected-features/rate-limiting; docs.rs/sentry 0.48.3 `ratelimit.rs`", "2026-11", "4:error;transaction:key, 2:default:organization", "4s"},
	{Header, "X-Retry-After", Wait, "", sec, "gateways", "*ours*: the name says it", "2026-11", "4", "4s"},
	{Header, "X-Rate-Limit-Retry-After-Seconds", Wait, "", sec, "Bucket4j", "documentation of bucket4j-spring-boot-starter", "2026-11", "4", "4s"},
	{Header, "X-Ratelimit-Delay", Wait, "", sec, "Airbrake", "airbrake/pybrake#254", "2023-01", "4", "4s"},
	{Header, "*Retry-After-Ms", Wait, "", ms, "any prefix", "*ours*: the name says it", "2026-11", "4000", "4s"},
	{Header, "*Retry-After-Milliseconds", Wait, "", ms, "any prefix", "*ours*: the name says it", "2026-11", "4000", "4s"},
	{Header, "*Retry-After-Millis", Wait, "", ms, "any prefix", "*ours*: the name says it", "2026-11", "4000", "4s"},
	{Header, "*Retry-After-Seconds", Wait, "", sec, "any prefix", "*ours*: the name says it", "2026-11", "4", "4s"},
	{Header, "*Retry-After-Sec", Wait, "", sec, "any prefix", "*ours*: the name says it", "2026-11", "4", "4s"},
	{Header, "*Retry-In", Wait, "", sec, "any prefix", "*ours*: the name says it", "2026-11", "4", "4s"},
	{Header, "*Retry-At", Wait, "", sec, "any prefix", "*ours*: the name says it", "2026-11", "2026-11-20T12:00:04Z", "4s"},
	{Header, "*Retry-After", Wait, "", sec, "any prefix, such as Beta- (Jira)", "port-labs/ocean#2384; BerriAI/litellm#21553", "2025-11", "4", "4s"},

	// Advice.
	{Header, "X-Should-Retry", Advice, "", 0, "OpenAI, Anthropic", "openai 6.49 and anthropic 1.11 (npm)", "2026-11", "false", "not again"},
	{Header, "Stripe-Should-Retry", Advice, "", 0, "Stripe", "stripe/stripe-node#692; stripe/stripe-go#954", "2019-09", "false", "not again"},

	// Limits in headers.
	{Header, "Ratelimit", Reset, structured, sec, "IETF drafts 08 to 10; Hugging Face", "draft-ietf-httpapi-ratelimit-headers-10; huggingface/huggingface_hub#3553", "2025-11", `"api";r=0;t=4`, "4s"},
	{Header, "Ratelimit", Reset, structured, sec, "IETF draft 07", "draft-ietf-httpapi-ratelimit-headers-07", "2026-11", "limit=100, remaining=0, reset=4", "4s"},
	{Header, "Ratelimit-Policy", Window, structured, sec, "the same", "draft-ietf-httpapi-ratelimit-headers-10", "2026-11", `"daily";q=1000;w=86400`, "24h0m0s"},
	{Header, "Ratelimit-Limit", Limit, "ratelimit", 0, "IETF drafts up to 06; GitLab, Twitch, DigitalOcean, Docker Hub, Zendesk", "draft-ietf-httpapi-ratelimit-headers-06", "2026-11", "100;w=21600", "100"},
	{Header, "Ratelimit-Remaining", Remaining, "ratelimit", 0, "the same", "the same", "2026-11", "0;w=21600", "0"},
	{Header, "Ratelimit-Reset", Reset, "ratelimit", sec, "the same; GitLab, Twitch, DigitalOcean: the epoch; others: seconds", "gitlab-org/gitlab#199738; TwitchLib, dev.twitch.tv/docs/api/guide", "2020-01", "1795176004", "4s"},
	{Header, "Ratelimit-Resettime", Reset, "ratelimit", sec, "GitLab: an HTTP date", "gitlab-org/gitlab#199738", "2020-01", "Fri, 20 Nov 2026 12:00:04 GMT", "4s"},

	{Header, "X-Ratelimit-Limit", Limit, "x-ratelimit", 0, "GitHub, Discord, Slack Connect, Jira, Mailgun, SendGrid, Intercom, ClickUp, Vercel, Datadog, Brave (a list)", "docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api", "2026-11", "5000", "5000"},
	{Header, "X-Ratelimit-Remaining", Remaining, "x-ratelimit", 0, "the same; Reddit: a fraction", "kemitche in old.reddit.com/r/redditdev/comments/1yxrp7", "2014-02", "0.0", "0"},
	{Header, "X-Ratelimit-Reset-After", Reset, "x-ratelimit", sec, "Discord: seconds with a fraction", "discord/discord-api-docs#1064; DSharpPlus/DSharpPlus#580", "2020-05", "4.25", "4.25s"},
	{Header, "X-Ratelimit-Reset", Reset, "x-ratelimit", sec, "GitHub, Discord, Sentry: the epoch; Reddit, Datadog, Together: seconds; Mailgun: milliseconds of the epoch; Jira: ISO 8601", "docs.github.com; port-labs/ocean#2384 (Jira); togethercomputer/skills#61", "2026-07", "2026-11-20T12:01Z", "1m"},
	{Header, "X-Ratelimit-Next", Reset, "x-ratelimit", sec, "Akamai: an instant", "techdocs.akamai.com/developer/docs/rate-limiting", "2026-11", "2026-11-20T12:00:04.000Z", "4s"},
	{Header, "X-Ratelimit-Period", Window, "x-ratelimit", sec, "Datadog", "docs.datadoghq.com/api/latest/rate-limits", "2026-11", "60", "1m"},
	{Header, "X-Ratelimit-Interval-Seconds", Window, "x-ratelimit", sec, "Jira and Confluence Data Center", "confluence.atlassian.com/doc/_ratelimiting_httpheaders-992678779.html", "2020-02", "60", "1m"},

	{Header, "X-Rate-Limit-Limit", Limit, "x-rate-limit", 0, "Okta, X (Twitter)", "discord/access#11 (Okta); ttezel/twit#99 (X)", "2024-03", "600", "600"},
	{Header, "X-Rate-Limit", Limit, "x-rate-limit", 0, "Zendesk", "developer.zendesk.com/documentation/ticketing/using-the-zendesk-api/best-practices-for-avoiding-rate-limiting", "2026-11", "700", "700"},
	{Header, "X-Rate-Limit-Remaining", Remaining, "x-rate-limit", 0, "Okta, X, Zendesk", "the same", "2026-11", "0", "0"},
	{Header, "X-Rate-Limit-Reset", Reset, "x-rate-limit", sec, "Okta (also twice in one answer), X: the epoch; Rocket.Chat: milliseconds of the epoch", "okta/okta-sdk-java#259; RocketChat/docs-old#1358", "2026-11", "1795176004, 1795176004", "4s"},

	{Header, "X-Ratelimit-Limit-Requests", Limit, "requests", 0, "OpenAI, Azure OpenAI, Groq", "platform.openai.com/docs/guides/rate-limits; Pythagora-io/gpt-pilot#862 (Groq)", "2024-04", "500", "500"},
	{Header, "X-Ratelimit-Remaining-Requests", Remaining, "requests", 0, "the same", "the same", "2026-11", "499", "499"},
	{Header, "X-Ratelimit-Reset-Requests", Full, "requests", sec, "OpenAI, Groq: a duration; Azure: seconds", "the same", "2026-11", "2m59.56s", "2m59.56s"},
	{Header, "X-Ratelimit-Limit-Tokens", Limit, "tokens", 0, "OpenAI, Azure OpenAI, Groq", "the same", "2026-11", "30000", "30000"},
	{Header, "X-Ratelimit-Remaining-Tokens", Remaining, "tokens", 0, "the same", "the same", "2026-11", "29984", "29984"},
	{Header, "X-Ratelimit-Reset-Tokens", Full, "tokens", sec, "the same", "the same", "2026-11", "7.66s", "7.66s"},

	{Header, "Anthropic-Ratelimit-Requests-Limit", Limit, "anthropic requests", 0, "Anthropic", "docs.anthropic.com/en/api/rate-limits", "2026-11", "50", "50"},
	{Header, "Anthropic-Ratelimit-Requests-Remaining", Remaining, "anthropic requests", 0, "Anthropic", "the same", "2026-11", "49", "49"},
	{Header, "Anthropic-Ratelimit-Requests-Reset", Full, "anthropic requests", sec, "Anthropic: RFC 3339", "the same", "2026-11", "2026-11-20T12:00:04Z", "4s"},
	{Header, "Anthropic-Ratelimit-Tokens-Limit", Limit, "anthropic tokens", 0, "Anthropic", "the same", "2026-11", "90000", "90000"},
	{Header, "Anthropic-Ratelimit-Tokens-Remaining", Remaining, "anthropic tokens", 0, "Anthropic", "the same", "2026-11", "80000", "80000"},
	{Header, "Anthropic-Ratelimit-Tokens-Reset", Full, "anthropic tokens", sec, "Anthropic: RFC 3339", "the same", "2026-11", "2026-11-20T12:00:04Z", "4s"},
	{Header, "Anthropic-Ratelimit-Input-Tokens-Limit", Limit, "anthropic input-tokens", 0, "Anthropic", "the same", "2026-11", "90000", "90000"},
	{Header, "Anthropic-Ratelimit-Input-Tokens-Remaining", Remaining, "anthropic input-tokens", 0, "Anthropic", "the same", "2026-11", "80000", "80000"},
	{Header, "Anthropic-Ratelimit-Input-Tokens-Reset", Full, "anthropic input-tokens", sec, "Anthropic: RFC 3339", "the same", "2026-11", "2026-11-20T12:00:04Z", "4s"},
	{Header, "Anthropic-Ratelimit-Output-Tokens-Limit", Limit, "anthropic output-tokens", 0, "Anthropic", "the same", "2026-11", "8000", "8000"},
	{Header, "Anthropic-Ratelimit-Output-Tokens-Remaining", Remaining, "anthropic output-tokens", 0, "Anthropic", "the same", "2026-11", "7000", "7000"},
	{Header, "Anthropic-Ratelimit-Output-Tokens-Reset", Full, "anthropic output-tokens", sec, "Anthropic: RFC 3339", "the same", "2026-11", "2026-11-20T12:00:04Z", "4s"},
	{Header, "Anthropic-Ratelimit-Unified-Limit", Limit, unified, 0, "Anthropic subscriptions", "answers to subscriptions, as seen", "2026-11", "100", "100"},
	{Header, "Anthropic-Ratelimit-Unified-Remaining", Remaining, unified, 0, "Anthropic subscriptions", "the same", "2026-11", "0", "0"},
	{Header, "Anthropic-Ratelimit-Unified-Reset", Full, unified, sec, "Anthropic subscriptions: the epoch", "the same", "2026-11", "1795176004", "4s"},

	// Limits that are only read for failures.
	{Header, "X-Rate-Limit-Limit-Requests", Limit, "azure requests", 0, "Azure OpenAI", "openai/openai-python#937, which has the resets", "2026-11", "60", "60"},
	{Header, "X-Rate-Limit-Remaining-Requests", Remaining, "azure requests", 0, "Azure OpenAI", "the same", "2026-11", "12", "12"},
	{Header, "X-Rate-Limit-Reset-Requests", Full, "azure requests", sec, "Azure OpenAI", "the same", "2026-11", "4", "4s"},
	{Header, "X-Rate-Limit-Limit-Tokens", Limit, "azure tokens", 0, "Azure OpenAI", "the same", "2026-11", "1000", "1000"},
	{Header, "X-Rate-Limit-Remaining-Tokens", Remaining, "azure tokens", 0, "Azure OpenAI", "the same", "2026-11", "12", "12"},
	{Header, "X-Rate-Limit-Reset-Tokens", Full, "azure tokens", sec, "Azure OpenAI", "the same", "2026-11", "4", "4s"},
	{Header, "X-Ratelimit-Requests-Limit", Limit, "linear requests", 0, "Linear", "mre/rate-limits#8", "2023-09", "1500", "1500"},
	{Header, "X-Ratelimit-Requests-Remaining", Remaining, "linear requests", 0, "Linear", "the same", "2023-09", "0", "0"},
	{Header, "X-Ratelimit-Requests-Reset", Reset, "linear requests", sec, "RapidAPI: seconds; Linear: milliseconds of the epoch", "docs.rapidapi.com/docs/response-headers; the same", "2026-11", "4", "4s"},
	{Header, "X-Ratelimit-Complexity-Limit", Limit, "linear complexity", 0, "Linear", "the same", "2023-09", "3000000", "3000000"},
	{Header, "X-Ratelimit-Complexity-Remaining", Remaining, "linear complexity", 0, "Linear", "the same", "2023-09", "0", "0"},
	{Header, "X-Ratelimit-Complexity-Reset", Reset, "linear complexity", ms, "Linear: milliseconds of the epoch", "the same", "2023-09", "1795176004000", "4s"},
	{Header, "X-Rate-Limit-Requests-Quota", Limit, "bigcommerce", 0, "BigCommerce", "developer.bigcommerce.com/docs/start/best-practices/api-rate-limits", "2026-11", "150", "150"},
	{Header, "X-Rate-Limit-Requests-Left", Remaining, "bigcommerce", 0, "BigCommerce", "the same", "2026-11", "0", "0"},
	{Header, "X-Rate-Limit-Time-Reset-Ms", Reset, "bigcommerce", ms, "BigCommerce", "the same", "2026-11", "4000", "4s"},
	{Header, "X-Rate-Limit-Time-Window-Ms", Window, "bigcommerce", ms, "BigCommerce", "the same", "2026-11", "30000", "30s"},
	{Header, "X-Hubspot-Ratelimit-Max", Limit, "hubspot", 0, "HubSpot", "developers.hubspot.com/docs/developer-tooling/platform/usage-guidelines", "2026-11", "190", "190"},
	{Header, "X-Hubspot-Ratelimit-Remaining", Remaining, "hubspot", 0, "HubSpot", "the same", "2026-11", "0", "0"},
	{Header, "X-Hubspot-Ratelimit-Interval-Milliseconds", Window, "hubspot", ms, "HubSpot", "the same", "2026-11", "10000", "10s"},
	{Header, "X-Hubspot-Ratelimit-Daily-Remaining", Remaining, "hubspot day", 0, "HubSpot", "the same", "2026-11", "0", "0"},
	{Header, "X-Hubspot-Ratelimit-Daily", Limit, "hubspot day", day, "HubSpot", "the same", "2026-11", "250000", "250000"},
	{Header, "X-Contentful-Ratelimit-Second-Remaining", Remaining, "contentful", 0, "Contentful", "contentful.com/developers/docs/references/content-management-api", "2026-11", "0", "0"},
	{Header, "X-Contentful-Ratelimit-Second-Limit", Limit, "contentful", 0, "Contentful", "the same", "2026-11", "10", "10"},
	{Header, "X-Contentful-Ratelimit-Reset", Reset, "contentful", sec, "Contentful", "the same", "2026-11", "1", "1s"},
	{Header, "X-Sentry-Rate-Limit-Limit", Limit, "sentry", 0, "Sentry", "docs.sentry.io/api/ratelimits", "2026-11", "40", "40"},
	{Header, "X-Sentry-Rate-Limit-Remaining", Remaining, "sentry", 0, "Sentry", "the same", "2026-11", "0", "0"},
	{Header, "X-Sentry-Rate-Limit-Reset", Reset, "sentry", sec, "Sentry: the epoch", "the same", "2026-11", "1795176004", "4s"},
	{Header, "X-Esi-Error-Limit-Remain", Remaining, "esi", 0, "EVE Online, with status 420", "esi/esi-issues#1191; burberius/eve-esi#98", "2020-04", "0", "0"},
	{Header, "X-Esi-Error-Limit-Reset", Reset, "esi", sec, "EVE Online, with status 420", "the same", "2020-04", "4", "4s"},
	{Header, "X-Shopify-Shop-Api-Call-Limit", Limit, "shopify", 0, "Shopify REST: used/limit", "shopify.dev/docs/api/usage/limits", "2026-11", "39/40", "40"},
	{Header, "X-Ratelimit-Limit-Second", Limit, "second", sec, "Kong", "docs.konghq.com/hub/kong-inc/rate-limiting", "2026-11", "5", "5"},
	{Header, "X-Ratelimit-Remaining-Second", Remaining, "second", 0, "Kong", "the same", "2026-11", "0", "0"},
	{Header, "X-Ratelimit-Limit-Minute", Limit, "minute", mins, "Kong", "the same", "2026-11", "60", "60"},
	{Header, "X-Ratelimit-Remaining-Minute", Remaining, "minute", 0, "Kong", "the same", "2026-11", "0", "0"},
	{Header, "X-Ratelimit-Limit-Hour", Limit, "hour", hour, "Kong", "the same", "2026-11", "1000", "1000"},
	{Header, "X-Ratelimit-Remaining-Hour", Remaining, "hour", 0, "Kong", "the same", "2026-11", "0", "0"},
	{Header, "X-Ratelimit-Limit-Day", Limit, "day", day, "Kong", "the same", "2026-11", "10000", "10000"},
	{Header, "X-Ratelimit-Remaining-Day", Remaining, "day", 0, "Kong", "the same", "2026-11", "0", "0"},
	{Header, "X-Ratelimit-Limit-Req-Minute", Limit, "mistral requests", mins, "Mistral", "mistralai/client-ts#169", "2026-02", "720", "720"},
	{Header, "X-Ratelimit-Remaining-Req-Minute", Remaining, "mistral requests", 0, "Mistral", "the same", "2026-02", "0", "0"},
	{Header, "X-Ratelimit-Limit-Tokens-Minute", Limit, "mistral tokens", mins, "Mistral", "the same", "2026-02", "5000000", "5000000"},
	{Header, "X-Ratelimit-Remaining-Tokens-Minute", Remaining, "mistral tokens", 0, "Mistral", "the same", "2026-02", "0", "0"},
	{Header, "X-Ratelimit-Reset-Tokens-Minute", Reset, "mistral tokens", sec, "Cerebras: seconds with a fraction", "inference-docs.cerebras.ai/support/rate-limits", "2026-11", "4.25", "4.25s"},
	{Header, "X-Ratelimit-Limit-Requests-Minute", Limit, "cerebras requests-minute", mins, "Cerebras", "the same", "2026-11", "120", "120"},
	{Header, "X-Ratelimit-Remaining-Requests-Minute", Remaining, "cerebras requests-minute", 0, "Cerebras", "the same", "2026-11", "0", "0"},
	{Header, "X-Ratelimit-Reset-Requests-Minute", Reset, "cerebras requests-minute", sec, "Cerebras: seconds with a fraction", "the same", "2026-11", "4.25", "4.25s"},
	{Header, "X-Ratelimit-Limit-Requests-Day", Limit, "cerebras requests-day", day, "Cerebras, SambaNova", "the same", "2026-11", "14400", "14400"},
	{Header, "X-Ratelimit-Remaining-Requests-Day", Remaining, "cerebras requests-day", 0, "Cerebras, SambaNova", "the same", "2026-11", "0", "0"},
	{Header, "X-Ratelimit-Reset-Requests-Day", Reset, "cerebras requests-day", sec, "Cerebras: seconds; SambaNova: a duration", "the same", "2026-11", "33011.382867", "9h10m11.382867s"},
	{Header, "X-Ratelimit-Limit-Tokens-Day", Limit, "cerebras tokens-day", day, "Cerebras", "the same", "2026-11", "1000000", "1000000"},
	{Header, "X-Ratelimit-Remaining-Tokens-Day", Remaining, "cerebras tokens-day", 0, "Cerebras", "the same", "2026-11", "0", "0"},
	{Header, "X-Ratelimit-Reset-Tokens-Day", Reset, "cerebras tokens-day", sec, "Cerebras: seconds", "the same", "2026-11", "33011.25", "9h10m11.25s"},
	{Header, "Gw-Ratelimit-Limit", Limit, "kucoin", 0, "KuCoin", "www.kucoin.com/docs-new/rate-limit", "2026-11", "500", "500"},
	{Header, "Gw-Ratelimit-Remaining", Remaining, "kucoin", 0, "KuCoin", "the same", "2026-11", "0", "0"},
	{Header, "Gw-Ratelimit-Reset", Reset, "kucoin", ms, "KuCoin: milliseconds", "the same", "2026-11", "4000", "4s"},
	{Header, "X-Bapi-Limit", Limit, "bybit", 0, "Bybit", "bybit-exchange.github.io/docs/v5/rate-limit", "2026-11", "10", "10"},
	{Header, "X-Bapi-Limit-Status", Remaining, "bybit", 0, "Bybit", "the same", "2026-11", "0", "0"},
	{Header, "X-Bapi-Limit-Reset-Timestamp", Reset, "bybit", ms, "Bybit: milliseconds of the epoch", "the same", "2026-11", "1795176004000", "4s"},
	{Header, "X-Minlimit-Remaining", Remaining, "xero minute", mins, "Xero", "XeroAPI/xero-node#634", "2023-02", "0", "0"},
	{Header, "X-Daylimit-Remaining", Remaining, "xero day", day, "Xero", "XeroAPI/xero-node#634", "2023-02", "0", "0"},
	{Header, "*Limit-Reset-Ms", Reset, "", ms, "any prefix", "*ours*: the name says it", "2026-11", "4000", "4s"},
	{Header, "*Limit-Reset-After", Reset, "", sec, "any prefix", "*ours*: the name says it", "2026-11", "4", "4s"},
	{Header, "*Limit-Reset-In", Reset, "", sec, "any prefix", "*ours*: the name says it", "2026-11", "4", "4s"},
	{Header, "*Limit-Reset-Seconds", Reset, "", sec, "any prefix", "*ours*: the name says it", "2026-11", "4", "4s"},
	{Header, "*Limit-Reset-At", Reset, "", sec, "any prefix", "*ours*: the name says it", "2026-11", "1795176004", "4s"},
	{Header, "*Limit-Reset-Time", Reset, "", sec, "any prefix", "*ours*: the name says it", "2026-11", "1795176004", "4s"},
	{Header, "*Limit-Reset-Timestamp", Reset, "", sec, "any prefix", "*ours*: the name says it", "2026-11", "1795176004", "4s"},
	{Header, "*Limit-Reset-Epoch", Reset, "", sec, "any prefix", "*ours*: the name says it", "2026-11", "1795176004", "4s"},
	{Header, "*Limit-Reset-Date", Reset, "", sec, "any prefix", "*ours*: the name says it", "2026-11", "Fri, 20 Nov 2026 12:00:04 GMT", "4s"},
	{Header, "*Limit-Reset-Utc", Reset, "", sec, "any prefix", "*ours*: the name says it", "2026-11", "2026-11-20T12:00:04Z", "4s"},
	{Header, "*Limit-Reset", Reset, "", sec, "any prefix, such as X-Beta- (Jira)", "port-labs/ocean#2384", "2025-11", "4", "4s"},
	{Header, "X-Current-Token-Count", Remaining, "walmart", 0, "Walmart", "developer.walmart.com/suppliers/docs/rate-limiting", "2026-11", "0", "0"},
	{Header, "X-Next-Replenishment-Time", Reset, "walmart", sec, "Walmart: seconds or milliseconds of the epoch", "the same", "2026-11", "1795176004000", "4s"},

	// Waits in JSON.
	{JSON, "error.details.retryDelay", Wait, "", sec, "Gemini, Vertex AI, all of google.rpc (RetryInfo)", "diegosouzapw/OmniRoute#9504", "2026-08", "36.429760048s", "36.429760048s"},
	{JSON, "*.retry_after_ms", Wait, "", ms, "gateways, others", "*ours*: the name says it", "2026-11", "4000", "4s"},
	{JSON, "*.retry_after_milliseconds", Wait, "", ms, "gateways, others", "*ours*: the name says it", "2026-11", "4000", "4s"},
	{JSON, "*.retry_in_ms", Wait, "", ms, "gateways, others", "*ours*: the name says it", "2026-11", "4000", "4s"},
	{JSON, "*.retry_after_millis", Wait, "", ms, "gateways, others", "*ours*: the name says it", "2026-11", "4000", "4s"},
	{JSON, "*.retry_after_msec", Wait, "", ms, "gateways, others", "*ours*: the name says it", "2026-11", "4000", "4s"},
	{JSON, "*.wait_ms", Reset, "", ms, "gateways, others", "*ours*: the name says it", "2026-11", "4000", "4s"},
	{JSON, "parameters.retry_after", Wait, "", sec, "Telegram", "core.telegram.org/bots/api#responseparameters; vanutp/tgbridge#157", "2026-11", "4", "4s"},
	{JSON, "retry_after", Wait, "", sec, "Discord: seconds with a fraction; Replicate", "discord.com/developers/docs/topics/rate-limits", "2026-11", "4.25", "4.25s"},
	{JSON, "error.retry_after", Wait, "", sec, "Dropbox", "dropbox.com/developers/documentation/http/documentation (RateLimitError)", "2026-11", "4", "4s"},
	{JSON, "*.retry_after", Wait, "", sec, "OpenStack, Replicate, many", "sekine-1113/Negotole#61 (`retryAfter`)", "2026-05", "4", "4s"},
	{JSON, "*.retry_after_seconds", Wait, "", sec, "Kubernetes, GitLab", "gitlab-org/gitlab!256657; kubernetes.io, `Status.details.retryAfterSeconds`", "2026-11", "4", "4s"},
	{JSON, "*.retry_after_secs", Wait, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "4", "4s"},
	{JSON, "*.retry_after_sec", Wait, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "4", "4s"},
	{JSON, "*.retry_delay_seconds", Wait, "", sec, "google.rpc as an object (`retryDelay.seconds`)", "*ours*: the name says it", "2026-11", "4", "4s"},
	{JSON, "*.retry_in_seconds", Wait, "", sec, "monday.com (`extensions.retry_in_seconds`)", "developer.monday.com/api-reference/docs/rate-limits; bruin-data/ingestr#868", "2026-06", "4", "4s"},
	{JSON, "*.retry_in", Wait, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "4", "4s"},
	{JSON, "*.next_retry_in", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "4", "4s"},
	{JSON, "*.next_retry_in_seconds", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "4", "4s"},
	{JSON, "*.retry_at", Wait, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "2026-11-20T12:00:04Z", "4s"},
	{JSON, "*.next_retry_at", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "2026-11-20T12:00:04Z", "4s"},
	{JSON, "*.next_request_at", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "2026-11-20T12:00:04Z", "4s"},
	{JSON, "*.available_at", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "2026-11-20T12:00:04Z", "4s"},
	{JSON, "*.retry_delay", Wait, "", sec, "google.rpc in other shapes", "*ours*: the name says it", "2026-11", "4s", "4s"},
	{JSON, "*.quota_reset_delay", Reset, "", sec, "Google Cloud Code (ErrorInfo)", "clients of Cloud Code that read it", "2026-11", "4.5s", "4.5s"},
	{JSON, "*.throttle_seconds", Wait, "", sec, "Bungie", "Bungie-net/api#1051", "2020-02", "4", "4s"},
	{JSON, "*.wait_seconds", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "4", "4s"},
	{JSON, "*.wait_time", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "4", "4s"},
	{JSON, "*.wait_time_seconds", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "4", "4s"},
	{JSON, "*.seconds_to_wait", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "4", "4s"},
	{JSON, "*.cooldown", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "4", "4s"},
	{JSON, "*.cooldown_seconds", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "4", "4s"},
	{JSON, "*.reset_after", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "4", "4s"},
	{JSON, "*.reset_in", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "4", "4s"},
	{JSON, "*.reset_in_seconds", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "4", "4s"},
	{JSON, "*.resets_in_seconds", Reset, "", sec, "ChatGPT subscriptions", "openai/codex#4111", "2025-09", "4", "4s"},
	{JSON, "*.reset_seconds", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "4", "4s"},
	{JSON, "*.resets_at", Reset, "", sec, "ChatGPT subscriptions: the epoch", "the same", "2025-09", "1795176004", "4s"},
	{JSON, "*.reset_at", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "2026-11-20T12:00:04Z", "4s"},
	{JSON, "*.reset_time", Reset, "", sec, "gateways, others", "*ours*: the name says it", "2026-11", "2026-11-20T12:00:04Z", "4s"},
	{JSON, "*.rate_limit_reset", Reset, "", sec, "gateways, others (also `rateLimit.reset`)", "*ours*: the name says it", "2026-11", "1795176004", "4s"},
	{JSON, "*.quota_reset_time_stamp", Reset, "", sec, "Google Cloud Code: an instant", "the same", "2026-11", "2026-11-20T12:00:04Z", "4s"},
	{JSON, "limit.reset", Reset, "", sec, "Vercel (`error.limit.reset`): the epoch", "vercel.com/docs/rest-api/errors", "2026-11", "1795176004", "4s"},
	{JSON, "error.limit.reset", Reset, "", sec, "Vercel: the epoch", "the same", "2026-11", "1795176004", "4s"},
	{JSON, "*.backoff", Reset, "", sec, "Stack Exchange", "api.stackexchange.com/docs/throttle; lucjon/Py-StackExchange#48", "2016-03", "4", "4s"},
	{JSON, "*.backoff_seconds", Reset, "", sec, "Infura (JSON-RPC)", "docs.infura.io: rate limits, `error.data.rate`", "2026-11", "4", "4s"},
	{JSON, "*.next_access_time", Reset, "", sec, "WSO2", "wso2/product-apim#1654", "2017-10", "2026-Nov-20 12:00:04+0000 UTC", "4s"},
	{JSON, "*.estimated_time_to_regain_access", Reset, "", mins, "Meta Graph (in X-Business-Use-Case-Usage, a header of JSON): minutes", "developers.facebook.com/docs/graph-api/overview/rate-limiting", "2026-11", "4", "4m"},
	{JSON, "*.reset_time_duration", Reset, "", sec, "Meta Marketing API (in X-Ad-Account-Usage)", "developers.facebook.com/docs/marketing-api/overview/rate-limiting", "2026-11", "4", "4s"},
	{JSON, "error.metadata.headers.X-RateLimit-Reset", Wait, "", sec, "OpenRouter: headers of the provider, read as headers (milliseconds of the epoch)", "openrouter.ai/docs/api-reference/limits; immersive-translate/immersive-translate#2725", "2026-11", "1795176004000", "4s"},
	{JSON, "extensions.cost.throttleStatus", Wait, "", sec, "Shopify GraphQL: (requestedQueryCost - currentlyAvailable) / restoreRate", "gist lacom/56e3834834e250270062583f425274b9; community.shopify.com/t/8456", "2023-10", `{"extensions":{"cost":{"requestedQueryCost":266,"throttleStatus":{"currentlyAvailable":66,"restoreRate":50}}}}`, "4s"},

	// Waits in messages.
	{Message, "try again in", Wait, "", sec, "OpenAI, Groq, Zulip, Reddit", "danielmiessler/Fabric#364; zulip/zulip#4831; praw-dev/praw#1954", "2023-05", "1m2.5s", "1m2.5s"},
	{Message, "again in", Wait, "", sec, "many", "*ours*: as the row above", "2026-11", "4 seconds", "4s"},
	{Message, "again after", Wait, "", sec, "many", "wso2/product-apim#1654 has the time in words; these are *ours*", "2017-10", "4 seconds", "4s"},
	{Message, "access api after", Wait, "", sec, "WSO2: an instant", "wso2/product-apim#1654", "2017-10", "2026-Nov-20 12:00:04+0000 UTC", "4s"},
	{Message, "request this after", Wait, "", sec, "Supabase", "supabase/auth, `over_email_send_rate_limit`", "2026-11", "4 seconds", "4s"},
	{Message, "replenished in", Wait, "", sec, "Azure API Management (403)", "learn.microsoft.com/azure/api-management/quota-policy", "2026-11", "00:00:04", "4s"},
	{Message, "timed out for", Wait, "", sec, "Stability AI", "platform.stability.ai/docs/api-reference", "2026-11", "60 seconds", "1m"},
	{Message, "try after", Wait, "", sec, "many", "*ours*: as the row above", "2026-11", "4 seconds", "4s"},
	{Message, "retry after ms", Wait, "", ms, "many, as `retry_after_ms`", "*ours*: the name says it", "2026-11", "4000", "4s"},
	{Message, "retry after seconds", Wait, "", sec, "many, as `retry_after_seconds`", "*ours*: the name says it", "2026-11", "4", "4s"},
	{Message, "retryafter", Wait, "", sec, "many, as `retryafter`", "*ours*: the name says it", "2026-11", "4", "4s"},
	{Message, "retry after", Wait, "", sec, "Azure OpenAI, Telegram, Gmail (an instant)", "alex-wolf-ps/dbchatprov2#2; googleapis/google-api-ruby-client#20544", "2024-11", "2026-11-20T12:00:04.500Z", "4.5s"},
	{Message, "retry your request after", Wait, "", sec, "many", "*ours*: as the row above", "2026-11", "4 seconds", "4s"},
	{Message, "retry in", Wait, "", sec, "Gemini", "diegosouzapw/OmniRoute#9504", "2026-08", "20.5s", "20.5s"},
	{Message, "retrying in", Wait, "", sec, "many", "*ours*: as the row above", "2026-11", "20ms", "20ms"},
	{Message, "available in", Wait, "", sec, "Django REST framework, Replicate, Stack Exchange", "jmfernandes/robin_stocks#326; mudassir0909/stackoverflow-card#6", "2021-10", "4 seconds", "4s"},
	{Message, "reset in", Wait, "", sec, "monday.com, Reddit", "airbytehq/airbyte#31539; redlib-org/redlib#255", "2023-10", "16 seconds", "16s"},
	{Message, "resets in", Wait, "", sec, "many", "*ours*: as the row above", "2026-11", "4 seconds", "4s"},
	{Message, "reset after", Wait, "", sec, "many", "*ours*: as the row above", "2026-11", "4s", "4s"},
	{Message, "break for", Wait, "", sec, "Reddit", "praw-dev/praw#1954", "2023-05", "9 minutes", "9m"},
	{Message, "wait for", Wait, "", sec, "many", "*ours*: the words say it", "2026-11", "4 seconds", "4s"},
	{Message, "wait", Wait, "", sec, "many", "*ours*: the words say it", "2026-11", "4 seconds", "4s"},
	{Message, "again at", Wait, "", sec, "many: an instant", "*ours*: the words say it", "2026-11", "2026-11-20T12:00:04Z", "4s"},
	{Message, "resets at", Wait, "", sec, "many: an instant", "*ours*: the words say it", "2026-11", "2026-11-20T12:00:04Z", "4s"},
	{Message, "reset at", Wait, "", sec, "clients of X: the epoch", "adamwynne/twitter-api#59", "2014-12", "2026-11-20T12:00:04Z", "4s"},
	{Message, "eservice:throttled", Wait, "", sec, "Kraken: the epoch", "docs.kraken.com/exchange/guides/general/errors", "2026-11", "1795176004", "4s"},
	{Message, "banned until", Wait, "", sec, "Binance: milliseconds of the epoch", "ccxt/binance-api-node#106; ignaciop000/binance-traderBot#17", "2018-07", "1795176004000", "4s"},
	{Message, "until", Wait, "", sec, "many: an instant", "*ours*: the words say it", "2026-11", "2026-11-20T12:00:04Z", "4s"},

	// Paths of codes, in order of precedence.
	{JSON, "__type", Names, "", 0, "AWS", "Smithy, awsJson1", "2026-11", "a#ThrottlingException", "ThrottlingException"},
	{JSON, "error.code", Names, "", 0, "OpenAI, Azure, Meta", "platform.openai.com/docs/guides/error-codes", "2026-11", "rate_limit_exceeded", "rate_limit_exceeded"},
	{JSON, "error.status", Names, "", 0, "Google (google.rpc)", "cloud.google.com/apis/design/errors", "2026-11", "RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED"},
	{JSON, "error.type", Names, "", 0, "Anthropic, OpenAI, Stripe", "docs.anthropic.com/en/api/errors", "2026-11", "rate_limit_error", "rate_limit_error"},
	{JSON, "response.error.code", Names, "", 0, "OpenAI (`response.failed`)", "platform.openai.com/docs/api-reference/responses-streaming", "2026-11", "rate_limit_exceeded", "rate_limit_exceeded"},
	{JSON, "code", Names, "", 0, "AWS, Notion, Plaid", "Smithy, restJson1; developers.notion.com/reference/status-codes", "2026-11", "rate_limited", "rate_limited"},
	{JSON, "Code", Names, "", 0, "AWS", "Smithy, restJson1", "2026-11", "Throttling", "Throttling"},
	{JSON, "Response.Error.Code", Names, "", 0, "Tencent Cloud, with status 200", "cloud.tencent.com/document/api/213/15694", "2026-11", "RequestLimitExceeded", "RequestLimitExceeded"},
	{JSON, "error", Names, "", 0, "Slack, Trello, Spotify", "docs.slack.dev/apis/web-api/rate-limits", "2026-11", "ratelimited", "ratelimited"},
	{JSON, "error.errors.reason", Known, "", 0, "Google Workspace, YouTube, Drive, Gmail, Calendar, BigQuery", "stackoverflow.com/questions/59655238", "2020-01", "userRateLimitExceeded", "userRateLimitExceeded"},
	{JSON, "error.details.reason", Known, "", 0, "Google (ErrorInfo)", "google-gemini/gemini-cli#10925", "2025-10", "RATE_LIMIT_EXCEEDED", "RATE_LIMIT_EXCEEDED"},
	{JSON, "errors.extensions.code", Known, "", 0, "GraphQL: Shopify, Linear, Apollo", "shopify.dev/docs/api/usage/limits; linear.app/developers/rate-limiting", "2026-11", "THROTTLED", "THROTTLED"},
	{JSON, "errors.extensions.type", Known, "", 0, "GraphQL: Linear", "linear.app/developers/rate-limiting", "2026-11", "ratelimited", "ratelimited"},
	{JSON, "errors.extensions.errorType", Known, "", 0, "GraphQL: DGS (Netflix)", "netflix.github.io/dgs/error-handling", "2026-11", "RATE_LIMITED", "RATE_LIMITED"},
	{JSON, "errors.extensions.errorCode", Known, "", 0, "GraphQL", "*ours*: the name says it", "2026-11", "THROTTLED", "THROTTLED"},
	{JSON, "errors.extensions.classification", Known, "", 0, "GraphQL: Spring", "docs.spring.io/spring-graphql", "2026-11", "RATE_LIMITED", "RATE_LIMITED"},
	{JSON, "errors.extensions.exception.code", Known, "", 0, "GraphQL: Apollo before 4", "apollographql.com/docs/apollo-server/data/errors", "2026-11", "THROTTLED", "THROTTLED"},
	{JSON, "errors.extensions.status", Known, "", 0, "GraphQL", "*ours*: the name says it", "2026-11", "429", "429"},
	{JSON, "errors.extensions.statusCode", Known, "", 0, "GraphQL", "*ours*: the name says it", "2026-11", "429", "429"},
	{JSON, "errors.extensions.http.status", Known, "", 0, "GraphQL: Apollo, The Guild", "apollographql.com/docs/apollo-server/data/errors", "2026-11", "429", "429"},
	{JSON, "errors.extensions.response.status", Known, "", 0, "GraphQL: Apollo (RESTDataSource)", "apollographql.com/docs/apollo-server/data/fetching-rest", "2026-11", "429", "429"},
	{JSON, "errors.status", Known, "", 0, "JSON:API", "jsonapi.org/format/#errors", "2026-11", "429", "429"},
	{JSON, "errors.statusCode", Known, "", 0, "GraphQL", "*ours*: the name says it", "2026-11", "429", "429"},
	{JSON, "errors.type", Known, "", 0, "GitHub GraphQL", "docs.github.com/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api", "2026-11", "RATE_LIMITED", "RATE_LIMITED"},
	{JSON, "errors.code", Known, "", 0, "Square, Twilio SendGrid, Plaid", "documentation of Square", "2026-11", "RATE_LIMITED", "RATE_LIMITED"},
	{JSON, "errors.error", Known, "", 0, "Airtable", "documentation of Airtable", "2026-11", "RATE_LIMIT_REACHED", "RATE_LIMIT_REACHED"},
	{JSON, "errors.errorCode", Known, "", 0, "in lists", "*ours*: as the row below", "2026-11", "REQUEST_LIMIT_EXCEEDED", "REQUEST_LIMIT_EXCEEDED"},
	{JSON, "errorCode", Known, "", 0, "Salesforce, DocuSign", "developer.salesforce.com/docs/atlas.en-us.api_rest.meta/api_rest/errorcodes.htm", "2026-11", "REQUEST_LIMIT_EXCEEDED", "REQUEST_LIMIT_EXCEEDED"},
	{JSON, "error_code", Known, "", 0, "monday.com", "airbytehq/airbyte#31539", "2023-10", "ComplexityException", "ComplexityException"},
	{JSON, "error_name", Known, "", 0, "Stack Exchange, with status 400", "lucjon/Py-StackExchange#48", "2016-03", "throttle_violation", "throttle_violation"},
	{JSON, "meta.errorType", Known, "", 0, "Foursquare (403)", "docs.foursquare.com/developer/reference/personalization-apis-errors", "2026-11", "rate_limit_exceeded", "rate_limit_exceeded"},
	{JSON, "errorType", Known, "", 0, "HubSpot", "community.hubspot.com (message 47812)", "2021-10", "RATE_LIMIT", "RATE_LIMIT"},
	{JSON, "reason", Known, "", 0, "Kubernetes", "kubernetes.io/docs/reference/kubernetes-api (Status)", "2026-11", "TooManyRequests", "TooManyRequests"},
	{JSON, "status", Known, "", 0, "Google Maps, with status 200", "developers.google.com/maps/documentation/geocoding/requests-geocoding", "2026-11", "OVER_QUERY_LIMIT", "OVER_QUERY_LIMIT"},
	{JSON, "type", Known, "", 0, "problem details (RFC 9457), Mistral", "earendil-works/pi#9815", "2026-09", "rate_limited", "rate_limited"},
	{JSON, "name", Known, "", 0, "PayPal", "paypal/PayPal-PHP-SDK#363", "2015-07", "RATE_LIMIT_REACHED", "RATE_LIMIT_REACHED"},
	{JSON, "json.errors", Known, "", 0, "Reddit", "praw-dev/praw#1954", "2023-05", "RATELIMIT", "RATELIMIT"},
	{JSON, "error.error", Known, "", 0, "gateways", "*ours*", "2026-11", "rate_limited", "rate_limited"},
	{JSON, "error.reason", Known, "", 0, "gateways", "*ours*", "2026-11", "rate_limited", "rate_limited"},
	{JSON, "error.reason..tag", Known, "", 0, "Dropbox", "dropbox.com/developers/documentation/http/documentation", "2026-11", "too_many_requests", "too_many_requests"},
	{JSON, "fault.detail.errorcode", Known, "", 0, "Apigee", "docs.apigee.com/api-platform/troubleshoot/runtime/quota-policies", "2026-11", "policies.ratelimit.SpikeArrestViolation", "policies.ratelimit.SpikeArrestViolation"},
	{JSON, "extensions.code", Known, "", 0, "gateways of GraphQL", "*ours*", "2026-11", "RATE_LIMITED", "RATE_LIMITED"},

	{JSON, "errors.message", Known, "", 0, "Shopify GraphQL, older", "community.shopify.com/t/8456", "2023-10", "Throttled", "Throttled"},

	// Codes that mean a throttle, with any status. Case and separators between words do not matter.
	{Code, "THROTTLED", Throttles, "", 0, "Shopify GraphQL, with status 200", "gist lacom/56e3834834e250270062583f425274b9", "2023-10", "THROTTLED", "throttled"},
	{Code, "RATELIMITED", Throttles, "", 0, "Linear (400), Slack", "linear.app/developers/rate-limiting", "2026-11", "RATELIMITED", "throttled"},
	{Code, "RATE_LIMIT", Throttles, "", 0, "HubSpot, Stripe, Reddit (RATELIMIT)", "docs.stripe.com/rate-limits", "2026-11", "rate_limit", "throttled"},
	{Code, "RATE_LIMIT_EXCEEDED", Throttles, "", 0, "Google (ErrorInfo), Google's rateLimitExceeded (403), Plaid", "google-gemini/gemini-cli#10925", "2025-10", "rateLimitExceeded", "throttled"},
	{Code, "RATE_LIMIT_REACHED", Throttles, "", 0, "PayPal, Yelp", "paypal/PayPal-PHP-SDK#363; shopware/shopware#14491; Yelp/yelp-fusion#388", "2026-01", "RATE_LIMIT_REACHED", "throttled"},
	{Code, "RATE_LIMIT_ERROR", Throttles, "", 0, "Anthropic, Square", "docs.anthropic.com/en/api/errors", "2026-11", "rate_limit_error", "throttled"},
	{Code, "userRateLimitExceeded", Throttles, "", 0, "Google Workspace (403)", "googleapis/google-api-python-client#170; jaredhanson/passport-google-oauth#75", "2015-04", "userRateLimitExceeded", "throttled"},
	{Code, "OVER_QUERY_LIMIT", Throttles, "", 0, "Google Maps, with status 200", "developers.google.com/maps/documentation/geocoding/requests-geocoding", "2026-11", "OVER_QUERY_LIMIT", "throttled"},
	{Code, "userRateLimitExceededUnreg", Throttles, "", 0, "Google (403), without a key", "developers.google.com/webmaster-tools/v1/errors", "2026-11", "userRateLimitExceededUnreg", "throttled"},
	{Code, "rateLimitExceededUnreg", Throttles, "", 0, "Google (403), without a key", "the same", "2026-11", "rateLimitExceededUnreg", "throttled"},
	{Code, "concurrentLimitExceeded", Throttles, "", 0, "Google (403)", "cloud.google.com/storage/docs/json_api/v1/status-codes", "2026-11", "concurrentLimitExceeded", "throttled"},
	{Code, "servingLimitExceeded", Throttles, "", 0, "Google (403)", "the same", "2026-11", "servingLimitExceeded", "throttled"},
	{Code, "TOO_MANY_REQUESTS", Throttles, "", 0, "Azure, Kubernetes, Dropbox, GraphQL", "learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling", "2026-11", "TooManyRequests", "throttled"},
	{Code, "ServerBusy", Throttles, "", 0, "Azure Storage (503)", "learn.microsoft.com/rest/api/storageservices/common-rest-api-error-codes", "2026-11", "ServerBusy", "throttled"},
	{Code, "ApplicationThrottled", Throttles, "", 0, "Exchange", "learn.microsoft.com/graph/throttling-limits", "2026-11", "ApplicationThrottled", "throttled"},
	{Code, "REQUEST_LIMIT_EXCEEDED", Throttles, "", 0, "Salesforce (403)", "developer.salesforce.com/docs/atlas.en-us.api_rest.meta/api_rest/errorcodes.htm", "2026-11", "REQUEST_LIMIT_EXCEEDED", "throttled"},
	{Code, "HOURLY_APIINVOCATION_LIMIT_EXCEEDED", Throttles, "", 0, "DocuSign (400)", "documentation of DocuSign; peopledoc/django-docusign#95 has the message", "2026-11", "HOURLY_APIINVOCATION_LIMIT_EXCEEDED", "throttled"},
	{Code, "BURST_APIINVOCATION_LIMIT_EXCEEDED", Throttles, "", 0, "DocuSign (400)", "the same", "2026-11", "BURST_APIINVOCATION_LIMIT_EXCEEDED", "throttled"},
	{Code, "throttle_violation", Throttles, "", 0, "Stack Exchange (400)", "lucjon/Py-StackExchange#48", "2016-03", "throttle_violation", "throttled"},
	{Code, "ComplexityException", Throttles, "", 0, "monday.com, with status 200", "airbytehq/airbyte#31539", "2023-10", "ComplexityException", "throttled"},
	{Code, "COMPLEXITY_BUDGET_EXHAUSTED", Throttles, "", 0, "monday.com", "airbytehq/airbyte#36717", "2024-04", "complexityBudgetExhausted", "throttled"},
	{Code, "ThrottleExceeded", Throttles, "", 0, "QuickBooks (403)", "routablehq/python-quickbooks#43", "2016-10", "ThrottleExceeded", "throttled"},
	{Code, "429", Throttles, "", 0, "OpenRouter with status 200, GraphQL, JSON:API: the status in the body", "openrouter.ai/docs/api-reference/errors", "2026-11", "429", "throttled"},
	{Code, "policies.ratelimit.SpikeArrestViolation", Throttles, "", 0, "Apigee (500, 429)", "docs.apigee.com/api-platform/troubleshoot/runtime/spike-arrest-policies", "2026-11", "policies.ratelimit.SpikeArrestViolation", "throttled"},
	{Code, "policies.ratelimit.QuotaViolation", Throttles, "", 0, "Apigee (500, 429)", "the same", "2026-11", "policies.ratelimit.QuotaViolation", "throttled"},
	{Code, "ERR_403_DEVELOPER_OVER_QPS", Throttles, "", 0, "Mashery (403), in `X-Mashery-Error-Code`", "docs.mashery.com", "2026-11", "ERR_403_DEVELOPER_OVER_QPS", "throttled"},
	{Code, "ERR_403_DEVELOPER_OVER_RATE", Quota, "", 0, "Mashery (403): the quota of a day", "the same", "2026-11", "ERR_403_DEVELOPER_OVER_RATE", "quota"},
	{Code, "OAuthException:4", Throttles, "", 0, "Meta Graph (400, 403): `error.code` 4, of the app", "nygardk/react-share#70", "2017-04", "OAuthException:4", "throttled"},
	{Code, "OAuthException:17", Throttles, "", 0, "Meta Graph: of the user", "facebook/facebook-php-business-sdk#483", "2018-09", "OAuthException:17", "throttled"},
	{Code, "OAuthException:32", Throttles, "", 0, "Meta Graph: of the page", "developers.facebook.com/docs/graph-api/overview/rate-limiting", "2026-11", "OAuthException:32", "throttled"},
	{Code, "OAuthException:341", Throttles, "", 0, "Meta Graph", "facebookarchive/php-graph-sdk#880", "2017-11", "OAuthException:341", "throttled"},
	{Code, "OAuthException:613", Throttles, "", 0, "Meta Graph: of one call", "developers.facebook.com/docs/graph-api/overview/rate-limiting", "2026-11", "OAuthException:613", "throttled"},
	{Code, "OAuthException:80004", Throttles, "", 0, "Meta Marketing API", "the same", "2026-11", "OAuthException:80004", "throttled"},
	{Code, "OAuthException:80007", Throttles, "", 0, "WhatsApp Business", "developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes", "2026-11", "OAuthException:80007", "throttled"},
	{Code, "OAuthException:80000", Throttles, "", 0, "Meta: Ads Insights", "developers.facebook.com/docs/graph-api/overview/rate-limiting", "2026-11", "OAuthException:80000", "throttled"},
	{Code, "OAuthException:80001", Throttles, "", 0, "Meta: pages", "developers.facebook.com/docs/graph-api/overview/rate-limiting", "2026-11", "OAuthException:80001", "throttled"},
	{Code, "OAuthException:80002", Throttles, "", 0, "Meta: Instagram", "developers.facebook.com/docs/graph-api/overview/rate-limiting", "2026-11", "OAuthException:80002", "throttled"},
	{Code, "OAuthException:80003", Throttles, "", 0, "Meta: custom audiences", "developers.facebook.com/docs/graph-api/overview/rate-limiting", "2026-11", "OAuthException:80003", "throttled"},
	{Code, "OAuthException:80005", Throttles, "", 0, "Meta: lead generation", "developers.facebook.com/docs/graph-api/overview/rate-limiting", "2026-11", "OAuthException:80005", "throttled"},
	{Code, "OAuthException:80006", Throttles, "", 0, "Meta: Messenger", "developers.facebook.com/docs/graph-api/overview/rate-limiting", "2026-11", "OAuthException:80006", "throttled"},
	{Code, "OAuthException:80008", Throttles, "", 0, "Meta: WhatsApp Business management", "developers.facebook.com/docs/graph-api/overview/rate-limiting", "2026-11", "OAuthException:80008", "throttled"},
	{Code, "OAuthException:80009", Throttles, "", 0, "Meta: catalogs", "developers.facebook.com/docs/graph-api/overview/rate-limiting", "2026-11", "OAuthException:80009", "throttled"},
	{Code, "OAuthException:80014", Throttles, "", 0, "Meta: batches of catalogs", "developers.facebook.com/docs/graph-api/overview/rate-limiting", "2026-11", "OAuthException:80014", "throttled"},
	{Code, "OAuthException:130429", Throttles, "", 0, "WhatsApp Business", "the same", "2026-11", "OAuthException:130429", "throttled"},
	{Code, "maxlag", Throttles, "", 0, "MediaWiki, with status 200 and Retry-After", "mediawiki.org/wiki/Manual:Maxlag_parameter", "2026-11", "maxlag", "throttled"},
	{Code, "vk:6", Throttles, "", 0, "VK, with status 200: `error.error_code` beside `error.error_msg`, requests per second", "raw.githubusercontent.com/VKCOM/vk-api-schema/master/errors.json 5.199", "2026-11", "vk:6", "throttled"},
	{Code, "vk:9", Throttles, "", 0, "VK, with status 200: flood control", "the same", "2026-11", "vk:9", "throttled"},
	{Code, "vk:29", Throttles, "", 0, "VK, with status 200: the limit of a method", "the same", "2026-11", "vk:29", "throttled"},
	{Code, "EAPI:Rate_limit_exceeded", Throttles, "", 0, "Kraken, with status 200: an element of `error`", "docs.kraken.com/exchange/guides/general/errors", "2026-11", "EAPI:Rate_limit_exceeded", "throttled"},
	{Code, "EOrder:Rate_limit_exceeded", Throttles, "", 0, "Kraken, with status 200", "the same", "2026-11", "EOrder:Rate_limit_exceeded", "throttled"},
	{Code, "EService:Throttled", Throttles, "", 0, "Kraken, with status 200", "the same", "2026-11", "EService:Throttled", "throttled"},
	{Code, "retCode:10006", Throttles, "", 0, "Bybit, with status 200: `retCode` beside `retMsg`", "bybit-exchange.github.io/docs/v5/rate-limit; donewiththedollar/directionalscalper#57", "2026-11", "retCode:10006", "throttled"},
	{Code, "retCode:10018", Throttles, "", 0, "Bybit, with status 200: of the address", "bybit-exchange.github.io/docs/v5/error", "2026-11", "retCode:10018", "throttled"},
	{Code, "feishu:99991400", Throttles, "", 0, "Feishu and Lark, with status 400: `code` beside `msg`", "open.feishu.cn/document/server-docs/api-call-guide/frequency-control", "2026-11", "feishu:99991400", "throttled"},
	{Code, "marketo:606", Throttles, "", 0, "Marketo, with status 200: `errors.code` beside `success: false` and `requestId`", "experienceleague.adobe.com/en/docs/marketo-developer/marketo/rest/error-codes", "2026-11", "marketo:606", "throttled"},
	{Code, "marketo:615", Throttles, "", 0, "Marketo, with status 200: concurrent calls", "the same", "2026-11", "marketo:615", "throttled"},
	{Code, "marketo:607", Quota, "", 0, "Marketo, with status 200: the quota of a day", "the same", "2026-11", "marketo:607", "quota"},
	{Code, "quotaExceeded", Quota, "", 0, "Google: YouTube, BigQuery (403)", "developers.google.com/youtube/v3/docs/errors", "2026-11", "quotaExceeded", "quota"},
	{Code, "ACCESS_LIMIT_REACHED", Quota, "", 0, "Yelp: the quota of a day", "Yelp/yelp-fusion#388", "2026-01", "ACCESS_LIMIT_REACHED", "quota"},
	{Code, "dailyLimitExceeded", Quota, "", 0, "Google Workspace (403): to the next midnight in California", "stackoverflow.com/questions/59655238; developers.google.com/workspace/drive/api/guides/handle-errors", "2020-01", "dailyLimitExceeded", "quota"},
	{Code, "dailyLimitExceededUnreg", Quota, "", 0, "Google (403), without a key", "developers.google.com/webmaster-tools/v1/errors", "2026-11", "dailyLimitExceededUnreg", "quota"},
	{Code, "sharingRateLimitExceeded", Quota, "", 0, "Google Drive (403): of a day", "the same", "2026-11", "sharingRateLimitExceeded", "quota"},
	{Code, "variableTermLimitExceeded", Quota, "", 0, "Google (403)", "the same", "2026-11", "variableTermLimitExceeded", "quota"},

	// Phrases that mean a throttle with status 403, if there is no code for it.
	{Words, "secondary rate limit", Throttles, "", 0, "GitHub (403)", "hub4j/github-api#2009; semantic-release/github#867", "2025-01", "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.", "throttled"},
	{Words, "abuse detection", Throttles, "", 0, "GitHub (403), until 2021", "octokit/plugin-throttling.js#438", "2021-09", "You have triggered an abuse detection mechanism.", "throttled"},
	{Words, "rate limit…exceed", Throttles, "", 0, "GitHub (403), Jira, many", "ahungry/org-jira#365 (Jira); google/go-github#2229", "2024-12", "API rate limit exceeded for user ID 1.", "throttled"},
	{Words, "exceeded…rate limit", Throttles, "", 0, "many", "*ours*: as the row above", "2026-11", "You have exceeded your rate limit.", "throttled"},
	{Words, "rate limit…reached", Throttles, "", 0, "OpenAI, Groq, many", "danielmiessler/Fabric#364 (Groq)", "2024-04", "Rate limit has been reached.", "throttled"},
	{Words, "rate limited", Throttles, "", 0, "Discord, Notion, many", "2anki/2anki.net#1522 (Notion)", "2024-05", "You are being rate limited.", "throttled"},
	{Words, "ratelimit…exceed", Throttles, "", 0, "many", "*ours*: as the row above", "2026-11", "RateLimit exceeded", "throttled"},
	{Words, "too many requests", Throttles, "", 0, "PayPal, Stack Exchange, many", "paypal/PayPal-PHP-SDK#363", "2015-07", "Too Many Requests", "throttled"},
	{Words, "request limit…exceed", Throttles, "", 0, "Salesforce (403)", "developer.salesforce.com", "2026-11", "Request limit exceeded.", "throttled"},
	{Words, "request limit reached", Throttles, "", 0, "Meta Graph (403)", "nygardk/react-share#70", "2017-04", "(#4) Application request limit reached", "throttled"},
	{Words, "requests…throttled", Throttles, "", 0, "many", "*ours*: as the row below", "2026-11", "Your requests are being throttled.", "throttled"},
	{Words, "request was throttled", Throttles, "", 0, "Django REST framework", "jmfernandes/robin_stocks#326", "2021-10", "Request was throttled.", "throttled"},
	{Words, "throttleexceeded", Throttles, "", 0, "QuickBooks (403)", "routablehq/python-quickbooks#43", "2016-10", "message=ThrottleExceeded; errorCode=003001; statusCode=429", "throttled"},
	{Words, "over…queries per second", Throttles, "", 0, "Mashery (403)", "docs.mashery.com", "2026-11", "Account Over Queries Per Second Limit", "throttled"},
	{Words, "developer over qps", Throttles, "", 0, "Mashery (403)", "docs.mashery.com", "2026-11", "Developer Over Qps", "throttled"},
	{Words, "developer over rate", Throttles, "", 0, "Mashery (403)", "docs.mashery.com", "2026-11", "Developer Over Rate", "throttled"},
	{Words, "quota exceeded for quota metric", Throttles, "", 0, "Google (403)", "GAM-team/got-your-back#309", "2021-03", "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user'", "throttled"},
	{Words, "request rate threshold exceeded", Throttles, "", 0, "SEC (403)", "*ours*: users quote the page", "2026-11", "SEC.gov | Request Rate Threshold Exceeded", "throttled"},
	{Words, "too much request weight", Throttles, "", 0, "Binance (418)", "developers.binance.com/docs/binance-spot-api-docs/errors (-1003)", "2026-11", "Way too much request weight used; IP banned until 1795176004000.", "throttled"},
	{Words, "doing that too much", Throttles, "", 0, "Reddit", "praw-dev/praw#1954", "2023-05", "you are doing that too much. try again in 9 minutes.", "throttled"},
	{Words, "doing that a lot", Throttles, "", 0, "Reddit", "the same", "2023-05", "Looks like you've been doing that a lot. Take a break for 9 minutes before trying again.", "throttled"},
	{Words, "out of call volume quota", Quota, "", 0, "Azure API Management (403)", "learn.microsoft.com/azure/api-management/quota-policy", "2026-11", "Out of call volume quota. Quota will be replenished in 11:40:41.", "quota"},
	{Words, "reached your daily limit", Quota, "", 0, "HubSpot", "developers.hubspot.com", "2026-11", "You have reached your daily limit.", "quota"},
	{Words, "maximum daily rate limit", Quota, "", 0, "Zoom", "developers.zoom.us/docs/api/rate-limits", "2026-11", "You have reached the maximum daily rate limit for this API.", "quota"},
	{Words, "day limit…reached", Quota, "", 0, "LinkedIn", "learn.microsoft.com/linkedin/shared/api-guide/concepts/rate-limits", "2026-11", "Resource level throttle DAY limit for calls to this resource is reached.", "quota"},
	{Words, "exceeded the daily quota", Quota, "", 0, "RapidAPI", "docs.rapidapi.com/docs/api-pricing", "2026-11", "You have exceeded the DAILY quota for Requests on your current plan, BASIC.", "quota"},
	{Words, "exceeded the monthly quota", Quota, "", 0, "RapidAPI", "the same", "2026-11", "You have exceeded the MONTHLY quota for Requests on your current plan, BASIC.", "quota"},
	{Words, "exceeded calls per month", Quota, "", 0, "WeatherAPI (403)", "weatherapi.com/docs", "2026-11", "API key has exceeded calls per month quota.", "quota"},
}

// structured is the group of RateLimit and RateLimit-Policy, which are structured fields; see structured.go.
const structured = "structured"

// sentryLimits is Sentry's header with waits of several limits.
const sentryLimits = "X-Sentry-Rate-Limits"

// unified is Anthropic's name for the combined limits of a subscription.
const unified = "unified"

// A phrase is the parts that a message must contain, in this order.
type phrase struct {
	parts []string
	quota bool
}

// Indexes, built once from the table.
var (
	waitHeaders   []*Row             // in order, without wildcards
	otherHeaders  []*Row             // those with wildcards
	knownHeaders  map[string]bool    //
	adviceHeaders []*Row             //
	families      []*family          //
	jsonPaths     map[string]int     // a path to the index of its wait in jsonWaits
	jsonKeys      map[string]int     // the folded last key of a path, likewise
	jsonWaits     []*Row             //
	codePaths     map[string]int     // a path to the index of its code in order of precedence
	anyCodes      int                // how many of them may contain unknown codes
	messageLeads  []*Row             //
	throttleWords []phrase           //
	throttleCodes map[string]verdict // by folded code
)

func init() {
	jsonPaths, jsonKeys, codePaths, throttleCodes = map[string]int{}, map[string]int{}, map[string]int{}, map[string]verdict{}
	knownHeaders = map[string]bool{}
	groups := map[string]*family{}
	for i := range Table {
		r := &Table[i]
		known := knownHeaders[r.Name]
		if r.Place == Header {
			knownHeaders[r.Name] = true
		}
		switch {
		case r.Place == Header && r.Name[0] == '*':
			otherHeaders = append(otherHeaders, r)
		case r.Place == Header && r.Means == Advice:
			adviceHeaders = append(adviceHeaders, r)
		case r.Place == Header && r.Means == Wait:
			if !known {
				waitHeaders = append(waitHeaders, r)
			}
		case r.Place == Header && r.Group == structured:
		case r.Place == Header:
			f := groups[r.Group]
			if f == nil {
				f = newFamily(r.Group)
				groups[r.Group] = f
				families = append(families, f)
			}
			f.add(r)
		case r.Place == JSON && (r.Means == Names || r.Means == Known):
			if codePaths[r.Name] = len(codePaths); r.Means == Names {
				anyCodes = len(codePaths)
			}
		case r.Place == JSON && strings.HasPrefix(r.Name, "*."):
			jsonKeys[fold(r.Name[2:])] = len(jsonWaits)
			jsonWaits = append(jsonWaits, r)
		case r.Place == JSON:
			jsonPaths[r.Name] = len(jsonWaits)
			jsonWaits = append(jsonWaits, r)
		case r.Place == Message:
			messageLeads = append(messageLeads, r)
		case r.Place == Words:
			throttleWords = append(throttleWords, phrase{strings.Split(r.Name, "…"), r.Means == Quota})
		case r.Place == Code:
			throttleCodes[fold(r.Name)] = verdict{class: outcome.Throttled, undone: true, quota: r.Means == Quota}
		}
	}
}

// fold normalizes the spelling of a name: lower-case letters and digits, without separators.
func fold(s string) string {
	if isFolded(s) {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z':
			b = append(b, c|0x20)
		case c != '_' && c != '-' && c != ' ' && c != '.':
			b = append(b, c)
		}
	}
	return string(b)
}

func isFolded(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' || c == '_' || c == '-' || c == ' ' || c == '.' {
			return false
		}
	}
	return true
}
