// SPDX-License-Identifier: BSD-3-Clause
// SLICC's ExpectedMap: which responses, with and without data, a transaction still waits for. It knows the kinds that may
// come and how many messages come in all; a line of data may come in several messages (parts), which count as one.
#pragma once

#include <map>

#include "base/error.hh"

namespace moscope::ruby {

template <class Response, class Data> class ExpectedMap {
  public:
    void clear(int parts) {
        responses_ = {};
        data_ = {};
        data_.parts = parts;
        all_ = 0;
    }
    void addExpectedRespType(Response kind) { responses_.came[kind] = false; }
    void addExpectedDataType(Data kind) { data_.came[kind] = false; }
    void setExpectedCount(int count) { all_ = count; }
    void addExpectedCount(int count) { all_ += count; }
    int received() const { return responses_.whole + data_.whole; }
    int expected() const { return all_ - received(); }
    bool hasExpected() const { return expected() != 0; }
    bool hasReceivedResp() const { return responses_.whole != 0; }
    bool hasReceivedData() const { return data_.whole != 0; }
    /// False: no message of this kind is expected.
    bool receiveResp(Response kind) {
        if (received() >= all_)
            throw ProtocolError("ExpectedMap: more responses than expected");
        return responses_.receive(kind);
    }
    bool receiveData(Data kind) {
        if (received() > all_)
            throw ProtocolError("ExpectedMap: more data than expected");
        return data_.receive(kind);
    }
    bool receivedRespType(Response kind) const { return responses_.has(kind); }
    bool receivedDataType(Data kind) const { return data_.has(kind); }

  private:
    template <class Kind> struct Side {
        std::map<Kind, bool> came;
        int parts = 1, parts_here = 0, whole = 0;

        bool receive(Kind kind) {
            const auto found = came.find(kind);
            if (found == came.end())
                return false;
            found->second = true;
            if (++parts_here == parts) {
                parts_here = 0;
                ++whole;
            }
            return true;
        }
        bool has(Kind kind) const {
            const auto found = came.find(kind);
            return found != came.end() && found->second;
        }
    };
    Side<Response> responses_;
    Side<Data> data_;
    int all_ = 0;
};

} // namespace moscope::ruby
