// SPDX-License-Identifier: BSD-3-Clause
// What every host serves over TCP: echo (RFC 862, port 7) and discard (RFC 863, port 9).
#pragma once

#include "net/tcp/tcp.hh"

namespace moscope::net {

class EchoServer final : public TcpUser {
  public:
    static constexpr std::uint16_t kPort = 7;
    explicit EchoServer(Tcp &tcp) : tcp_(tcp) { tcp.listen(tcp.add_user(*this), kPort); }

  private:
    void received(ConnectionId id, Bytes bytes, Tick now) override { tcp_.send(id, bytes, now); }
    void finished(ConnectionId id, Tick now) override { tcp_.finish(id, now); }
    Tcp &tcp_;
};

class DiscardServer final : public TcpUser {
  public:
    static constexpr std::uint16_t kPort = 9;
    explicit DiscardServer(Tcp &tcp) : tcp_(tcp) { tcp.listen(tcp.add_user(*this), kPort); }

  private:
    void finished(ConnectionId id, Tick now) override { tcp_.finish(id, now); }
    Tcp &tcp_;
};

} // namespace moscope::net
