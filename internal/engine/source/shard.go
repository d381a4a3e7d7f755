package source

import "fmt"

// checkShard compares the selector that a list says it was made with, if it says one, with the one
// that was asked for. Another one is an error, because the list may lack objects.
func (s *Source) checkShard(asked, applied string) error {
	if s.Shard.IsAll() || applied == "" || applied == asked {
		return nil
	}
	err := fmt.Errorf("the server has listed the shard %q, and was asked for %q", applied, asked)
	if asked != "" {
		s.leaveOut(shardParameter, err)
	}
	return err
}
