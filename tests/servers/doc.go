// Package servers tests how informers treat servers: their connections, credentials, outages,
// refusals and odd answers.
package servers
